#include "experiments/report/readers/fields.hpp"

namespace fomoe::report {

using scenario::JsonObject;

namespace {

constexpr const char* kQuantities[] = {"wall_clock",  "compute", "communication", "synchronization",
                                       "utilization", "bytes",   "first_round",   "later_rounds"};

/// An error of either sign; empty if the key is missing or null, which stands for an infinite error.
std::optional<double> known_error(const JsonObject& object, const std::string& name) {
  if (!object.has(name) || object.at(name, "").is_null()) return std::nullopt;
  return real(object, name);
}

}  // namespace

Validation read_validation(const std::string& path, const Json& document) {
  const JsonObject json = fields(path, "", document);
  Validation validation;
  validation.path = path;
  each(path, json, "groups", [&](const JsonObject& entry) {
    Validation::Group& group = validation.groups.emplace_back();
    group.name = entry.text("name");
    group.runs = entry.count("runs", 1);
    const JsonObject errors = inner(path, entry, "errors");
    for (const std::string quantity : kQuantities) {
      if (!errors.has(quantity)) continue;
      const JsonObject of = inner(path, errors, quantity);
      group.errors.push_back({quantity, of.text("worst_run"), known_error(of, "median"),
                              known_error(of, "p95"), known_error(of, "worst"), known_error(of, "bias")});
    }
  });
  if (validation.groups.empty()) json.refuse("groups", "none", "at least one group of runs");
  each(path, json, "runs", [&](const JsonObject& entry) {
    Validation::Compared& run = validation.runs.emplace_back();
    run.name = entry.text("run");
    run.bound = entry.text("bound");
    run.paced = entry.boolean("paced");
    run.measured_s = inner(path, entry, "measured").seconds("wall_clock_s");
    run.predicted_s = inner(path, entry, "predicted").seconds("wall_clock_s");
    run.error = known_error(inner(path, entry, "errors"), "wall_clock");
  });
  if (validation.runs.empty()) json.refuse("runs", "none", "at least one run");
  return validation;
}

}  // namespace fomoe::report
