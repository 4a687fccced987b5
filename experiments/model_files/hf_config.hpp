// Reads a model from a Hugging Face config.json.
#pragma once
#include <string>
#include <vector>

#include "costmodel/inputs/model_shape.hpp"

namespace fomoe::scenario {

/// The supported values of "model_type".
std::vector<std::string> hf_model_types();
/// The same, of models with experts or of dense models.
std::vector<std::string> hf_model_types(bool with_experts);

struct HfOptions {
  /// Counts the multi-token-prediction modules that the config names. They are left out otherwise, as in the
  /// published parameter counts.
  bool multi_token_prediction = false;
};

/// Throws FileError that names the field and its line. The model's name is the file's name, or the folder's
/// name if the file is called config.json. `sequence_length` stays 0, because a config states the longest
/// context and not the training length.
costmodel::ModelShape read_hf_config(const std::string& path, const HfOptions& options = {});

}  // namespace fomoe::scenario
