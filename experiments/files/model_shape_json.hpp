// Writes and reads a model's complete shape as JSON, for files that must identify the model exactly.
#pragma once
#include "costmodel/inputs/model_shape.hpp"
#include "experiments/json/json_object.hpp"

namespace fomoe::scenario {

/// The nine numbers that describe a model of the paper's family, as in a step profile.
Json paper_shape_json(const costmodel::ModelShape& shape);
/// The numbers of paper_shape_json, and every other member of the shape whose value differs from that of the
/// paper's family.
Json exact_shape_json(const costmodel::ModelShape& shape);
/// Reads the object that exact_shape_json wrote, from "model" in `json`. Throws FileError.
costmodel::ModelShape read_exact_shape(const std::string& path, const JsonKind& kind, const Json& json);

}  // namespace fomoe::scenario
