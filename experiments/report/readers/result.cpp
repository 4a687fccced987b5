#include "experiments/report/readers/result.hpp"

#include <filesystem>
#include <set>

#include "experiments/report/readers/fields.hpp"
#include "experiments/report/readers/names.hpp"
#include "experiments/scenario/toml/document.hpp"

namespace fomoe::report {

namespace {

constexpr scenario::JsonKind kPlanKind = {"fomoe.planner/1", "result", "", ""};
constexpr scenario::JsonKind kCompareKind = {"fomoe.compare/1", "result", "", ""};
constexpr scenario::JsonKind kSweepKind = {"fomoe.sweep/1", "result", "", ""};
constexpr scenario::JsonKind kSolveKind = {"fomoe.solve/1", "result", "", ""};
constexpr scenario::JsonKind kValidationKind = {"fomoe.validation/1", "result", "", ""};
constexpr scenario::JsonKind kWanKind = {"fomoe.wan/1", "result", "", ""};

/// A unique name: "run", then "run (2)" if files in several folders have the same name.
std::string unique_name(const std::string& stem, std::set<std::string>& taken) {
  std::string name = stem;
  for (int i = 2; !taken.insert(name).second; ++i) name = stem + " (" + std::to_string(i) + ")";
  return name;
}

}  // namespace

Results read_results(const std::vector<std::string>& paths) {
  Results results;
  std::set<std::string> names;
  for (const std::string& path : paths) {
    Json json = scenario::read_any_json(
        path, {&kRunKind, &kPlanKind, &kWanKind, &kCompareKind, &kSweepKind, &kSolveKind, &kValidationKind});
    const Json schema = json["schema"];
    const std::string stem = std::filesystem::path(path).stem().string();
    const auto add = [&](auto& list, auto result, const std::string& name) {
      list.push_back(std::move(result));
      list.back().name = unique_name(name, names);
    };
    if (schema == kPlanKind.schema) {
      add(results.plans, read_plan(path, json), stem);
    } else if (schema == kSweepKind.schema) {
      add(results.sweeps, read_sweep(path, json), stem);
    } else if (schema == kSolveKind.schema) {
      add(results.solved, read_solved(path, json), stem);
    } else if (schema == kValidationKind.schema) {
      add(results.validations, read_validation(path, json), stem);
    } else if (schema == kCompareKind.schema) {
      each(path, fields(path, "", json), "cases", [&](const scenario::JsonObject& one) {
        add(results.runs, read_run(path, one.at("report", "the report of a case")),
            short_case(one.text("case")));
      });
    } else {
      if (schema == kWanKind.schema) {
        if (!json.contains("run_report") || !json["run_report"].is_object())
          scenario::fail(path, "run_report", "nothing", "the report of a training run", kRunKind.remedy);
        json = Json(json["run_report"]);
      }
      add(results.runs, read_run(path, json), stem);
    }
  }
  return results;
}

}  // namespace fomoe::report
