// A model's whole shape in JSON and back, for files that must say exactly which model they are about.
#pragma once
#include "costmodel/inputs/model_shape.hpp"
#include "experiments/json/json_object.hpp"

namespace fomoe::scenario {

/// The nine numbers that describe a model of the paper's family; what a step profile says of its model.
Json paper_shape_json(const costmodel::ModelShape& shape);
/// The same, and every other member that differs from that family's value.
Json exact_shape_json(const costmodel::ModelShape& shape);
/// What exact_shape_json wrote, found under "model" of `json`. Throws FileError.
costmodel::ModelShape read_exact_shape(const std::string& path, const JsonKind& kind, const Json& json);

}  // namespace fomoe::scenario
