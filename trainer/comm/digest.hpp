// Names and values of what two processes, or a process and a file, must have in common. Messages name the
// entry that differs.
#pragma once
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace fomoe::trainer {

/// Pairs of a name and a value, such as {"model.layers", "4"}.
using Digest = std::vector<std::pair<std::string, std::string>>;

/// The first entry in which `other` differs, for instance "model.layers (4 instead of 2)"; empty if there is
/// none.
std::optional<std::string> first_difference(const Digest& digest, const Digest& other);

std::string to_json(const Digest& digest);
/// Throws std::exception if the text is not one that to_json() wrote.
Digest digest_from_json(const std::string& text);

}  // namespace fomoe::trainer
