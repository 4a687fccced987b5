// A model's shape from the names and shapes of its weights, for models of any architecture.
#pragma once
#include <string>
#include <vector>

#include "experiments/model_files/hf_config.hpp"

namespace fomoe::scenario {

/// Reads the headers of all *.safetensors files in `folder`. If the folder also has a config.json of a known
/// architecture, whose counts agree exactly with the tensors, the result is that architecture's shape and
/// nothing is guessed. Otherwise it is an opaque shape: the tensors whose names have the component "experts"
/// are the routed experts, and all others are dense. The experts per token, the heads and the like are then
/// taken from config.json where it has a usual name for them. `sequence_length` stays 0. Throws FileError.
GuessedModel read_weights(const std::string& folder);

}  // namespace fomoe::scenario
