#include "experiments/analysis/measured_runs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "costmodel/compose/make_plan.hpp"
#include "costmodel/plan/site_shares.hpp"
#include "experiments/cli/options.hpp"
#include "sim/executor/simulated_run.hpp"

namespace fomoe::commands {

namespace po = boost::program_options;

namespace {

/// What the kernel said about the connections of the run, as settings of [network_model]: it is what took
/// place, whatever the scenario assumed. Facts that differ between the connections are left out.
std::vector<std::string> seen_settings(const scenario::SeenConnections& seen) {
  std::vector<std::string> settings;
  if (seen.list.empty()) return settings;
  const scenario::SeenConnection& first = seen.list.front();
  const bool alike = std::all_of(seen.list.begin(), seen.list.end(), [&](const auto& one) {
    return one.congestion_control == first.congestion_control;
  });
  if (alike && costmodel::enum_of<costmodel::CongestionControl>(first.congestion_control))
    settings.push_back("network_model.congestion_control=" + first.congestion_control);
  if (seen.send_buffer_bytes > 0)
    settings.push_back(fmt::format("network_model.send_buffer={}B", seen.send_buffer_bytes));
  if (seen.receive_buffer_bytes > 0)
    settings.push_back(fmt::format("network_model.receive_buffer={}B", seen.receive_buffer_bytes));
  return settings;
}

/// The plan of the run as if a round followed: experts then move after the last one of its own. Without
/// rounds if the run ends within a round.
costmodel::Plan first_rounds_of_longer(const costmodel::Scenario& scenario) {
  const std::int64_t steps = costmodel::optimizer_steps(scenario);
  if (steps % scenario.strategy.local_steps != 0) return {};
  const std::int64_t rounds = steps / scenario.strategy.local_steps;
  costmodel::Scenario longer = scenario;
  longer.workload.tokens += scenario.workload.tokens / rounds;
  costmodel::Plan plan = costmodel::make_plan(longer);
  if (plan.rounds != rounds + 1) return {};
  plan.rounds = rounds;
  plan.steps = steps;
  for (costmodel::RoundClass& kind : plan.classes)
    while (kind.count > 0 && kind.round_at(kind.count - 1) >= rounds) --kind.count;
  std::erase_if(plan.classes, [](const costmodel::RoundClass& kind) { return kind.count == 0; });
  return plan;
}

sim::RunOptions every_round() {
  sim::RunOptions options;
  options.all_rounds = true;
  options.seen_flows = true;
  return options;
}

}  // namespace

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
    if (const auto seen = seen_settings(measured.record.connections);
        !seen.empty() && scenario.network.initial_window_bytes) {
      settings.insert(settings.begin(), seen.begin(), seen.end());
      scenario = scenario::read_scenario(measured.record.source, path, settings);
    }
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
  return sim::simulate_scenario(scenario, every_round()).report;
}

costmodel::RunReport predict(const ReadRun& run) {
  const costmodel::RunReport predicted = predict(run.scenario);
  const auto as_measured = [&](const costmodel::RunReport& report) {
    return report.bytes_sent_per_site_per_round == run.measured.report.bytes_sent_per_site_per_round;
  };
  const costmodel::Strategy& strategy = run.scenario.strategy;
  if (as_measured(predicted) || strategy.placement != costmodel::PlacementKind::random) return predicted;
  costmodel::Plan plan = first_rounds_of_longer(run.scenario);
  if (plan.rounds == 0) return predicted;
  costmodel::RunReport moved = sim::simulate_plan(run.scenario, std::move(plan), every_round()).report;
  return as_measured(moved) ? moved : predicted;
}

}  // namespace fomoe::commands
