// Reads the [trainer] table.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "costmodel/inputs/scenario.hpp"
#include "experiments/scenario/keys/trainer_settings.hpp"
#include "experiments/scenario/scenario_reader.hpp"

namespace fomoe::scenario {

/// Reads [trainer] from the file that `scenario` was read from, with the same overrides.
TrainerSettings read_trainer_settings(const std::string& path, const ReadOptions& options,
                                      const costmodel::Scenario& scenario);

/// The settings that influence the trained weights, as pairs of a key and its value. The data and the dtype
/// are not among them, since the values of their keys do not determine what is trained on.
std::vector<std::pair<std::string, std::string>> weight_settings(const TrainerSettings& settings);

}  // namespace fomoe::scenario
