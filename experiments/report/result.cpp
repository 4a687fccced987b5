#include "experiments/report/result.hpp"

#include <filesystem>
#include <set>

#include "experiments/report/fields.hpp"
#include "experiments/scenario/document.hpp"

namespace fomoe::report {

namespace {

constexpr scenario::JsonKind kPlanKind = {"fomoe.plan/1", "result", "", ""};
constexpr scenario::JsonKind kWanKind = {"fomoe.wan/1", "result", "", ""};

/// "run", then "run (2)", where files in several folders have the same name.
std::string unique_name(const std::string& path, std::set<std::string>& taken) {
  const std::string stem = std::filesystem::path(path).stem().string();
  std::string name = stem;
  for (int i = 2; !taken.insert(name).second; ++i) name = stem + " (" + std::to_string(i) + ")";
  return name;
}

}  // namespace

Results read_results(const std::vector<std::string>& paths) {
  Results results;
  std::set<std::string> names;
  for (const std::string& path : paths) {
    Json json = scenario::read_any_json(path, {&kRunKind, &kPlanKind, &kWanKind});
    if (json["schema"] == kPlanKind.schema) {
      results.plans.push_back(read_plan(path, json));
      results.plans.back().name = unique_name(path, names);
      continue;
    }
    if (json["schema"] == kWanKind.schema) {
      if (!json.contains("run_report") || !json["run_report"].is_object())
        scenario::fail(path, "run_report", "nothing", "the report of a training", kRunKind.remedy);
      json = Json(json["run_report"]);
    }
    results.runs.push_back(read_run(path, json));
    results.runs.back().name = unique_name(path, names);
  }
  return results;
}

}  // namespace fomoe::report
