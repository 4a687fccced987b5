// Reads and writes step profiles as JSON, schema "fomoe.step-profile/1", or "/2" with shares of
// sequences (imported from logs of whole steps). The keys are the field names of StepProfile.
#pragma once
#include <string>

#include "costmodel/inputs/step_profile.hpp"

namespace fomoe::scenario {

/// Throws FileError for a wrong file, a missing or unknown key, or a negative time. `source` of the returned
/// profile is set to `path`.
costmodel::StepProfile read_step_profile(const std::string& path);
/// The same for the text of a file that is part of the program. `name` is used in messages.
costmodel::StepProfile parse_step_profile(const std::string& text, const std::string& name);
std::string step_profile_json(const costmodel::StepProfile& profile);

}  // namespace fomoe::scenario
