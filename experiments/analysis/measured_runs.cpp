#include "experiments/analysis/measured_runs.hpp"

#include <fmt/format.h>

#include <map>

#include "experiments/cli/options.hpp"
#include "sim/executor/simulated_run.hpp"

namespace fomoe::commands {

namespace po = boost::program_options;

std::vector<ReadRun> read_runs(const std::vector<std::string>& paths,
                               const std::vector<std::string>& overrides, bool in_turn) {
  std::vector<ReadRun> runs;
  std::map<std::string, std::string> path_of;  // the path of each run's report, by run id
  for (const std::string& path : paths) {
    scenario::MeasuredRun measured = scenario::read_measured_run(path, in_turn);
    const auto [first, is_new] = path_of.emplace(measured.record.id, path);
    if (!is_new)
      throw UsageError(
          fmt::format("{}: got run {} twice; expected each run once; the other report of this run is {}",
                      path, measured.record.id, first->second));
    std::vector<std::string> settings = measured.record.settings;
    settings.insert(settings.end(), overrides.begin(), overrides.end());
    costmodel::Scenario scenario = scenario::read_scenario(measured.record.source, path, settings);
    runs.push_back({std::move(measured), std::move(scenario)});
  }
  return runs;
}

std::vector<std::string> network_overrides(const po::variables_map& values) {
  std::vector<std::string> overrides;
  if (values.count("set")) overrides = values["set"].as<std::vector<std::string>>();
  for (const std::string& assignment : overrides) {
    if (!assignment.starts_with("network_model."))
      throw UsageError(
          fmt::format("--set: got \"{}\"; expected a key of network_model, because all other keys describe "
                      "the measured run; for example --set network_model.bandwidth_efficiency=0.95",
                      assignment));
  }
  return overrides;
}

costmodel::RunReport predict(const costmodel::Scenario& scenario) {
  sim::RunOptions options;
  options.all_rounds = true;
  options.seen_flows = true;
  return sim::simulate_scenario(scenario, options).report;
}

}  // namespace fomoe::commands
