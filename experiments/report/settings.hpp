// Formats JSON objects as tables with words and units: the resolved scenario, goodput, replicas.
#pragma once
#include <string>

#include "experiments/results/json_values.hpp"

namespace fomoe::report {

/// A number with the unit that ends the key's name: "20 MB", "1.25 GB/s", "50 ms".
std::string value_text(const std::string& key, const scenario::Json& value);

/// The tables of an object. One table shows the values that are neither objects nor lists of objects. Each
/// nested object and each list of objects has a table of its own.
std::string settings(const std::string& caption, const scenario::Json& object);

}  // namespace fomoe::report
