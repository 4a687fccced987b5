// Reads result files: unknown keys are allowed, but known keys must have valid values.
#pragma once
#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "experiments/json/json_object.hpp"
#include "experiments/report/readers/result.hpp"

namespace fomoe::report {

inline constexpr scenario::JsonKind kRunKind = {
    "fomoe.run/1", "result", "a file that fomoe simulate, fomoe-train run or fomoe plan wrote with --output",
    "fomoe simulate experiments/scenarios/two-sites.toml --output run.json"};

/// `path` must outlive the returned object.
inline scenario::JsonObject fields(const std::string& path, const std::string& where, const Json& json) {
  return scenario::open_object(path, kRunKind, where, json);
}

/// The object under `name`.
inline scenario::JsonObject inner(const std::string& path, const scenario::JsonObject& outer,
                                  const std::string& name) {
  return fields(path, outer.key(name), outer.at(name, "an object"));
}

/// A number of at least zero.
inline double amount(const scenario::JsonObject& object, const std::string& name) {
  return object.number(name, "a number of at least 0");
}

/// Returns nothing if the key is missing or null.
inline std::optional<double> known_amount(const scenario::JsonObject& object, const std::string& name) {
  if (!object.has(name) || object.at(name, "").is_null()) return std::nullopt;
  return amount(object, name);
}

/// A number of either sign.
inline double real(const scenario::JsonObject& object, const std::string& name) {
  const Json& value = object.at(name, "a number");
  if (!value.is_number() || !std::isfinite(value.get<double>())) object.refuse_value(name, value, "a number");
  return value.get<double>();
}

inline std::vector<std::string> texts(const scenario::JsonObject& object, const std::string& name) {
  std::vector<std::string> list;
  for (const Json& entry : object.array(name)) {
    if (!entry.is_string()) object.refuse_value(name, entry, "texts");
    list.push_back(entry.get<std::string>());
  }
  return list;
}

/// Calls `read` for each entry of the array under `name`.
template <class Read>
void each(const std::string& path, const scenario::JsonObject& object, const std::string& name, Read&& read) {
  std::size_t i = 0;
  for (const Json& entry : object.array(name)) {
    read(fields(path, object.key(name) + '[' + std::to_string(i) + ']', entry));
    ++i;
  }
}

Run read_run(const std::string& path, const Json& json);
Plan read_plan(const std::string& path, const Json& json);
Sweep read_sweep(const std::string& path, const Json& json);
Solved read_solved(const std::string& path, const Json& json);
Validation read_validation(const std::string& path, const Json& json);
/// Both are empty if the result does not have the keys.
Inputs read_inputs(const std::string& path, const scenario::JsonObject& result);
Sensitivities read_sensitivities(const std::string& path, const scenario::JsonObject& result);

}  // namespace fomoe::report
