// JSON shown as it is, in words and units: the resolved scenario, goodput, replicas.
#pragma once
#include <string>

#include "experiments/results/json_values.hpp"

namespace fomoe::report {

/// "20 MB", "1.25 GB/s", "50 ms": by the unit that the key's name ends with.
std::string value_text(const std::string& key, const scenario::Json& value);

/// Tables of an object: one of its plain values, one for each object in it, one for each list of objects.
std::string settings(const std::string& caption, const scenario::Json& object);

}  // namespace fomoe::report
