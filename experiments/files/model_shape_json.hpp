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
/// Reads the object that exact_shape_json wrote, from "model" in `json`. A shape of unknown sequence length
/// is refused unless `least_sequence` is 0. Throws FileError.
costmodel::ModelShape read_exact_shape(const std::string& path, const JsonKind& kind, const Json& json,
                                       std::int64_t least_sequence = 1);

}  // namespace fomoe::scenario
