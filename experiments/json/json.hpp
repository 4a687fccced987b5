// The JSON type of the project: keys keep the order in which they were written.
#pragma once
#include <nlohmann/json.hpp>
#include <string>

extern template class nlohmann::basic_json<nlohmann::ordered_map>;  // compiled once, in json.cpp

namespace fomoe::scenario {

using Json = nlohmann::ordered_json;

/// Indented, with a newline at the end. Text that is not UTF-8, such as a file's name may be, is replaced.
std::string to_text(const Json& document);

}  // namespace fomoe::scenario
