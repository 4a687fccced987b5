// The JSON type of the project, whose objects keep the order of their keys.
#pragma once
#include <nlohmann/json.hpp>
#include <string>

extern template class nlohmann::basic_json<nlohmann::ordered_map>;  // compiled once, in json.cpp

namespace fomoe::scenario {

using Json = nlohmann::ordered_json;

/// Serialises with indentation and a final newline. Bytes that are not UTF-8, as file names may contain, are
/// replaced. All documents that the program writes pass here: throws InputError for a number that is not
/// finite, which would become null, and std::logic_error for a time (a key that ends in _s, but for
/// the bound wall_clock_low_s) below zero.
std::string to_text(const Json& document);

}  // namespace fomoe::scenario
