// What the names of weights tell of a model: where a tensor belongs, and how its layer mixes tokens.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "experiments/model_files/safetensors_headers.hpp"

namespace fomoe::scenario {

/// Where a tensor belongs, by its name.
struct TensorPlace {
  std::string stack;  // the name before the layer's number; empty outside of layers
  std::int64_t layer = -1;
  bool routed = false;                 // a tensor of routed experts
  std::optional<std::int64_t> expert;  // its number, if each expert has tensors of its own
};
TensorPlace place_of(const TensorHeader& tensor);

/// Whether the tensor belongs to an encoder of images or sound, to its projector, to experts for images or to
/// a model that makes sound. None of them runs for a token of text.
bool is_outside_language_model(const std::string& name);

/// How the part of a layer that has this tensor mixes tokens: by attention, if the tensor projects queries,
/// or by a state of fixed size. `module` is the name of the part, "" if the tensor tells nothing.
struct TensorMixing {
  std::string module;
  bool attention = false, state = false;
};
TensorMixing mixing_of(const std::string& name);

bool has_part(const std::string& name, const char* part);

}  // namespace fomoe::scenario
