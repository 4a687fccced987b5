// Reads a model from a Hugging Face config.json.
#pragma once
#include <string>
#include <vector>

#include "costmodel/inputs/model_shape.hpp"
#include "platforms/provenance.hpp"

namespace fomoe::scenario {

/// A shape with what was guessed or taken from defaults, for the user to confirm.
struct GuessedModel {
  costmodel::ModelShape shape;
  std::vector<Provenance> notes;
};

/// The supported values of "model_type". A config of another model_type is read as well if its object with
/// the language model ("text_config" and its like) has one of them.
std::vector<std::string> hf_model_types();
/// The same, of models with experts or of dense models.
std::vector<std::string> hf_model_types(bool with_experts);

struct HfOptions {
  /// Counts the multi-token-prediction modules that the config names. They are left out otherwise, as in the
  /// published parameter counts.
  bool multi_token_prediction = false;
};

/// Whether the file has an architecture that read_hf_model() reads. Throws FileError if it is not JSON.
bool knows_hf_config(const std::string& path);

/// Throws FileError that names the field and its line. The model's name is the file's name, or the folder's
/// name if the file is called config.json. `sequence_length` stays 0, because a config states the longest
/// context and not the training length. Notes say which encoders of images or sound were left out, and which
/// values are defaults of the library that writes these files.
GuessedModel read_hf_model(const std::string& path, const HfOptions& options = {});
/// The same without the notes.
costmodel::ModelShape read_hf_config(const std::string& path, const HfOptions& options = {});

}  // namespace fomoe::scenario
