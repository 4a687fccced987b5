// Formats JSON objects as tables with words and units: the resolved scenario, goodput, replicas.
#pragma once
#include <string>

#include "experiments/results/json_values.hpp"

namespace fomoe::report {

/// A number with the unit that ends the key's name: "20 MB", "1.25 GB/s", "50 ms".
std::string value_text(const std::string& key, const scenario::Json& value);

/// The tables of an object: one of its plain values, one for each nested object, and one for each list of
/// objects.
std::string settings(const std::string& caption, const scenario::Json& object);

}  // namespace fomoe::report
