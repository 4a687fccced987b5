// Machine-readable files: step profiles in and out, run reports out. Outputs are written to a temporary
// name beside the target and renamed, so that no reader ever sees half a file.
#pragma once
#include <string>

#include "costmodel/run_report.hpp"
#include "costmodel/scenario.hpp"
#include "costmodel/step_profile.hpp"

namespace fomoe::scenario {

/// Schema "fomoe.step-profile/1"; keys are the field names of StepProfile. Throws FileError, also where a key
/// is missing or unknown, or a time is negative. `source` is the path, whatever the file says.
costmodel::StepProfile read_step_profile(const std::string& path);
std::string step_profile_json(const costmodel::StepProfile& profile);

/// Schema "fomoe.run/1"; keys are the field names of RunReport. The same report gives the same bytes, and
/// numbers read back exactly. With a scenario: echoed, resolved and in SI units, under "scenario".
std::string run_report_json(const costmodel::RunReport& report);
std::string run_report_json(const costmodel::RunReport& report, const costmodel::Scenario& scenario);

/// Writes all of `text` or nothing. Throws std::runtime_error.
void write_file(const std::string& path, const std::string& text);

}  // namespace fomoe::scenario
