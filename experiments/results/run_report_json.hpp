// Run reports as JSON.
#pragma once
#include <string>

#include "costmodel/inputs/scenario.hpp"
#include "costmodel/report/run_report.hpp"

namespace fomoe::scenario {

/// Schema "fomoe.run/1"; keys are the field names of RunReport. The same report gives the same bytes, and
/// numbers read back exactly. With a scenario: echoed, resolved and in SI units, under "scenario".
std::string run_report_json(const costmodel::RunReport& report);
std::string run_report_json(const costmodel::RunReport& report, const costmodel::Scenario& scenario);

}  // namespace fomoe::scenario
