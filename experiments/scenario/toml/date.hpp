// Dates in scenarios and price files.
#pragma once
#include <string>

#include "experiments/scenario/toml/table_reader.hpp"

namespace fomoe::scenario {

/// The text of a key that has a day of the calendar, as ISO 8601 writes it: "2026-01-15". Throws the error of
/// any other text at the key.
std::string date(const TableReader& table, std::string_view key);

}  // namespace fomoe::scenario
