// A model as its Hugging Face config.json describes it.
#pragma once
#include <string>
#include <vector>

#include "costmodel/inputs/model_shape.hpp"

namespace fomoe::scenario {

/// The values of "model_type" that are understood.
std::vector<std::string> hf_model_types();

/// Throws FileError, naming the field and its line. The name is the file's, or its folder's where that is
/// config.json. `sequence_length` stays 0: a config states the longest context, not what it trains on.
costmodel::ModelShape read_hf_config(const std::string& path);

}  // namespace fomoe::scenario
