// Writes run reports as JSON.
#pragma once
#include <string>

#include "costmodel/inputs/scenario.hpp"
#include "costmodel/report/run_report.hpp"

namespace fomoe::scenario {

/// Schema "fomoe.run/1"; the keys are the field names of RunReport. The same report always gives the same
/// bytes, and numbers keep all digits. If a scenario is given, it is added under "scenario", resolved and in
/// SI units.
std::string run_report_json(const costmodel::RunReport& report);
std::string run_report_json(const costmodel::RunReport& report, const costmodel::Scenario& scenario);

}  // namespace fomoe::scenario
