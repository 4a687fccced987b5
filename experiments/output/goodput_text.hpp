// What a report says of failures and of other seeds, for people; empty where it says nothing.
#pragma once
#include <string>

#include "costmodel/report/run_report.hpp"

namespace fomoe::commands {

std::string goodput_text(const costmodel::RunReport& report);
std::string replicas_text(const costmodel::RunReport& report);

}  // namespace fomoe::commands
