#include "experiments/analysis/measured_runs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "costmodel/compose/make_plan.hpp"
#include "costmodel/compose/ring_orders.hpp"
#include "costmodel/plan/absences.hpp"
#include "costmodel/plan/site_shares.hpp"
#include "experiments/cli/options.hpp"
#include "experiments/scenario/toml/document.hpp"
#include "experiments/text/suggest.hpp"
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

/// The order of the sites in the rings of the run, from the note of its report: another version may choose
/// another one. Without the note it is the given order, and empty if the note leaves out sites.
std::vector<int> ring_of(const std::vector<std::string>& notes, const platforms::Platform& platform) {
  std::vector<int> ring(platform.sites.size());
  std::iota(ring.begin(), ring.end(), 0);
  const std::string begin = costmodel::kRingOrderNote, arrow = costmodel::kRingArrow;
  const auto note = std::find_if(notes.begin(), notes.end(),
                                 [&](const std::string& one) { return one.starts_with(begin); });
  if (note == notes.end()) return ring;
  std::vector<int> told;
  std::string rest = note->substr(begin.size());
  while (!rest.empty()) {
    const auto site = std::find_if(platform.sites.begin(), platform.sites.end(), [&](const auto& one) {
      return rest.starts_with(one.name + arrow) || rest.starts_with(one.name + ": ");
    });
    if (site == platform.sites.end()) return {};
    told.push_back(static_cast<int>(site - platform.sites.begin()));
    rest.erase(0, site->name.size());
    if (!rest.starts_with(arrow)) break;
    rest.erase(0, arrow.size());
  }
  return std::is_permutation(told.begin(), told.end(), ring.begin(), ring.end()) ? told : std::vector<int>();
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

/// As a real run is observed, and with all of its rounds.
sim::RunOptions every_round() {
  sim::RunOptions options;
  options.all_rounds = true;
  options.seen_flows = true;
  return options;
}

}  // namespace

std::vector<ReadRun> read_runs(const std::vector<std::string>& paths,
                               const std::vector<std::string>& overrides, const scenario::AlsoRead& also) {
  std::vector<ReadRun> runs;
  std::map<std::string, std::string> path_of;  // the path of each run's report, by run id
  for (const std::string& path : paths) {
    scenario::MeasuredRun measured = scenario::read_measured_run(path, also);
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
    // If this version chooses the same order, it also knows the rings of some of the sites.
    const std::vector<int> ring = ring_of(measured.report.notes, scenario.platform);
    std::vector<int> chosen = ring_of({}, scenario.platform);
    costmodel::RingOrders(scenario).apply(chosen);
    if (chosen != ring) scenario.strategy.ring_of_run = ring;
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

namespace {

/// Rounds `first` … `end` − 1 of the plan, without the absent sites, as a plan of their own: its processes
/// have just been started, so that its connections are new.
costmodel::Plan part_of(const costmodel::Plan& plan, std::int64_t first, std::int64_t end,
                        const std::vector<bool>& absent) {
  costmodel::Plan part = plan;
  part.rounds = end - first;
  part.steps = std::max<std::int64_t>(1, plan.steps * part.rounds / plan.rounds);
  part.classes = {{part.rounds, 0, /*identical=*/false, [](std::int64_t i) { return i; },
                   plan.classes.front().overlapping, plan.classes.front().reach}};
  part.round = [round = plan.round, first, absent](std::int64_t index) {
    return costmodel::without(round(first + index), absent);
  };
  if (plan.placement)
    part.placement = [placement = plan.placement, first](std::int64_t round) {
      return placement(first + round);
    };
  return part;
}

/// By node of the plan.
std::vector<bool> absent_nodes(const ReadRun& run, const costmodel::Plan& plan,
                               const scenario::PartOfRun& part) {
  std::vector<bool> absent(plan.nodes.size(), false);
  const std::vector<platforms::Site>& sites = run.scenario.platform.sites;
  for (const std::string& name : part.absent) {
    const auto site = std::find_if(sites.begin(), sites.end(),
                                   [&](const platforms::Site& one) { return one.name == name; });
    if (site == sites.end()) {
      std::vector<std::string> names;
      for (const platforms::Site& one : sites) names.push_back(one.name);
      scenario::fail(run.measured.path, "run.whole_run.parts.absent", '"' + name + '"',
                     "a site of the run's scenario", '"' + scenario::nearest(name, names) + '"');
    }
    for (std::size_t node = 0; node < absent.size(); ++node)
      absent[node] = absent[node] || plan.nodes[node].site == static_cast<int>(site - sites.begin());
  }
  return absent;
}

}  // namespace

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

PredictedParts predict_parts(const ReadRun& run) {
  const scenario::WholeRun& whole = *run.measured.record.all;
  const costmodel::RunReport& report = run.measured.report;
  costmodel::Scenario scenario = run.scenario;
  if (scenario.failures) scenario.failures->outages.clear();  // what was lost is known
  const costmodel::Plan plan = costmodel::make_plan(scenario);
  PredictedParts parts;
  parts.lost_s = whole.lost_s;
  for (std::size_t i = 0; i < whole.parts.size(); ++i) {
    const scenario::PartOfRun& part = whole.parts[i];
    const bool last = i + 1 == whole.parts.size();
    const std::int64_t end = last ? plan.rounds : whole.parts[i + 1].first_round;
    if (end > plan.rounds || (last && end <= part.first_round))
      scenario::fail(run.measured.path, "run.whole_run.parts.first_round",
                     fmt::format("{}", last ? part.first_round : end),
                     fmt::format("rounds of the run, which has {}", plan.rounds), "0");
    parts.measured_s += last ? report.wall_clock_s - report.round.upkeep_delay_s.value_or(0) *
                                                         static_cast<double>(report.round.count)
                             : part.saved_s - part.began_s - part.upkeep_s;
    if (end == part.first_round) continue;  // it was lost before its first checkpoint
    const costmodel::RunReport predicted =
        sim::simulate_plan(scenario, part_of(plan, part.first_round, end, absent_nodes(run, plan, part)),
                           every_round())
            .report;
    parts.predicted_s += predicted.wall_clock_s;
    if (last) parts.last = predicted;
  }
  return parts;
}

costmodel::RunErrors errors_of(ReadRun& run, costmodel::RunReport& predicted) {
  costmodel::RunReport& measured = run.measured.report;
  if (run.measured.record.whole) {
    predicted = predict(run);
    return run.measured.record.in_turn ? costmodel::errors_in_turn(predicted, measured)
                                       : costmodel::errors_of(predicted, measured);
  }
  const PredictedParts parts = predict_parts(run);
  predicted = parts.last;
  if (run.measured.record.in_turn) return costmodel::errors_in_turn(predicted, measured);
  costmodel::RunErrors errors = costmodel::errors_of(predicted, measured);
  errors[static_cast<std::size_t>(costmodel::Compared::wall_clock)] =
      parts.predicted_s / parts.measured_s - 1;
  measured.wall_clock_s = parts.measured_s + parts.lost_s;
  predicted.wall_clock_s = parts.predicted_s + parts.lost_s;
  return errors;
}

}  // namespace fomoe::commands
