// Step profiles as JSON, schema "fomoe.step-profile/1"; the keys are the field names of StepProfile.
#pragma once
#include <string>

#include "costmodel/inputs/step_profile.hpp"

namespace fomoe::scenario {

/// Throws FileError, also where a key is missing or unknown, or a time is negative. `source` of the profile
/// is the path, whatever the file says.
costmodel::StepProfile read_step_profile(const std::string& path);
std::string step_profile_json(const costmodel::StepProfile& profile);

}  // namespace fomoe::scenario
