// Formats failures, goodput and results of other seeds for people. Empty if the report has none of them.
#pragma once
#include <string>

#include "costmodel/report/run_report.hpp"

namespace fomoe::commands {

std::string goodput_text(const costmodel::RunReport& report);
/// Which sites missed rounds; empty without a quorum and outages.
std::string attendance_text(const costmodel::RunReport& report);
std::string replicas_text(const costmodel::RunReport& report);

}  // namespace fomoe::commands
