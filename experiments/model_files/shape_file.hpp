// A model's shape in a file of its own, with what was guessed about it (schema fomoe.model/1).
#pragma once
#include <string>

#include "experiments/json/json.hpp"
#include "experiments/model_files/weights.hpp"

namespace fomoe::scenario {

Json shape_file_json(const GuessedModel& model);
/// Throws FileError if the file is not of this schema or describes no model. Each guess of the file becomes a
/// note.
GuessedModel read_shape_file(const std::string& path);

}  // namespace fomoe::scenario
