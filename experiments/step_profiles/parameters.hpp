// Compares the number of parameters that a log states with that of the model for which it is imported.
#pragma once
#include <string>

#include "experiments/step_profiles/logs/log_reader.hpp"

namespace fomoe::step_profiles {

/// Throws FileError if the numbers differ by more than 2 %, or by more than the log has rounded. A log of
/// parameters by rank that lacks ranks, or may lack them, can only state too many.
void check_parameters(const Log& log, const std::string& path, const costmodel::ModelShape& model);

}  // namespace fomoe::step_profiles
