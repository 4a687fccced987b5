// The values that fields of a config.json have if the file omits them.
#pragma once
#include <string>

#include "experiments/json/json.hpp"

namespace fomoe::scenario {

struct LibraryDefaults {
  Json values = Json::object();  // by the names of the fields
  std::string source;            // "transformers 5.24.0 for gemma2"; empty if the defaults are not known
};

/// The defaults of an architecture, from experiments/data/library_defaults.json. A field of the table that
/// the library derives from others, such as num_key_value_heads = num_attention_heads, has no default here:
/// the function that reads the field derives it in the same way.
LibraryDefaults library_defaults(const std::string& model_type);

}  // namespace fomoe::scenario
