// Whole models from checkpoints.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "trainer/whole/whole_model.hpp"

namespace fomoe::trainer {

/// The whole model, with the state of the optimisers, after `rounds` rounds, or after the most rounds for
/// which `directory`, the argument of --checkpoints, has the files of all nodes. Throws FileError.
WholeModel read_checkpointed(const std::string& directory, std::optional<std::int64_t> rounds = std::nullopt);

}  // namespace fomoe::trainer
