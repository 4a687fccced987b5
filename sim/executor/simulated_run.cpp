#include "sim/executor/simulated_run.hpp"

#include <algorithm>
#include <utility>

#include "costmodel/compose/make_plan.hpp"
#include "costmodel/compute/operation_seconds.hpp"
#include "costmodel/math/replicas.hpp"
#include "costmodel/plan/pieces.hpp"
#include "costmodel/timeline/class_mean.hpp"
#include "costmodel/timeline/report_assembly.hpp"
#include "costmodel/timeline/seen_flows.hpp"
#include "platforms/support/input_error.hpp"
#include "sim/executor/simulate.hpp"

namespace fomoe::sim {

namespace {

// Identical rounds reach a steady state after a few rounds. They need a few because a site that ends a round
// early starts the next one early.
constexpr std::int64_t kIdenticalRounds = 3;
// Placements that are drawn anew for each round make rounds differ a little. The smaller number of rounds is
// enough if they agree within kNarrow. It is not used with noise, since a few rounds may all lack a rare
// event.
constexpr std::int64_t kRandomRounds = 8, kFewestRandomRounds = 4;
constexpr std::size_t kMostPacedNodes = 16;  // nodes; a limit since each change of a pair's rate is an event
constexpr double kNarrow = 0.01;             // half-width of the 95 % confidence interval ÷ mean duration
// The first overlapping rounds fill the pipeline; the last one empties it.
constexpr std::int64_t kOverlappingRounds = 8, kFewestOverlappingRounds = 5;
// Overlapping rounds that differ need more, since the first quarter and the last two do not represent the
// others.
constexpr std::int64_t kRandomOverlappingRounds = 32;

std::vector<std::int64_t> executed_rounds(const costmodel::RoundClass& round_class,
                                          const RunOptions& options) {
  std::int64_t usual = round_class.identical ? kIdenticalRounds : kRandomRounds;
  if (round_class.overlapping)
    usual =
        (round_class.identical ? kOverlappingRounds : kRandomOverlappingRounds) + 2 * (round_class.reach - 1);
  std::int64_t wanted = options.all_rounds ? round_class.count : options.rounds.value_or(usual);
  if (round_class.overlapping) wanted = std::max(wanted, kFewestOverlappingRounds);
  if (round_class.known && std::min(wanted, round_class.count) > *round_class.known) {
    if (options.all_rounds || options.rounds)
      throw InputError(
          "--rounds", std::to_string(std::min(wanted, round_class.count)),
          "at most " + std::to_string(*round_class.known) + ", the number of rounds that the plan describes",
          "--rounds " + std::to_string(*round_class.known));
    wanted = *round_class.known;
  }
  std::vector<std::int64_t> indices;
  for (std::int64_t i = 0; i < std::min(wanted, round_class.count); ++i)
    indices.push_back(round_class.round_at(i));
  if (round_class.overlapping) indices.back() = round_class.round_at(round_class.count - 1);
  return indices;
}

/// The least time over all nodes, in seconds, that a node computes in the round before its first transfer.
double silence_s(const costmodel::RoundPlan& round, std::int64_t index, std::size_t nodes,
                 const ComputeSeconds& seconds) {
  std::vector<double> silent_s(nodes, 0);
  for (costmodel::OpId op = 0; op < static_cast<costmodel::OpId>(round.ops.size()); ++op) {
    const auto* compute = std::get_if<costmodel::Compute>(&round.ops[static_cast<std::size_t>(op)].what);
    if (compute == nullptr) break;
    for (const costmodel::NodeId node : compute->nodes)
      silent_s[static_cast<std::size_t>(node)] += seconds(*compute, node, index, op);
  }
  return *std::min_element(silent_s.begin(), silent_s.end());
}

/// Decides whether BBR senders are simulated one by one. A BBR sender probes every 10 s, so a small sample of
/// rounds may all have a probe, or all lack one. Senders are therefore simulated one by one only if every
/// round is executed, or if nodes compute for so long that every round has a probe (the first executed round
/// decides). There must also be one class of rounds only, or a second one that is the last round alone.
costmodel::Senders senders_of(const costmodel::NetworkModel& network, const SimulatedRun& run,
                              const ComputeSeconds& seconds) {
  const auto& classes = run.plan.classes;
  if (network.congestion_control != costmodel::CongestionControl::bbr ||
      run.plan.nodes.size() > kMostPacedNodes || !costmodel::in_turn(run.plan))
    return costmodel::Senders::averaged;
  for (std::size_t c = 0; c < classes.size(); ++c) {
    if (static_cast<std::int64_t>(run.executed[c].size()) == classes[c].count) continue;
    const std::int64_t first = run.executed[c].front();
    if (classes[c].overlapping ||
        silence_s(run.plan.round(first), first, run.plan.nodes.size(), seconds) < costmodel::kBbrProbeEvery_s)
      return costmodel::Senders::averaged;
  }
  return costmodel::Senders::one_by_one;
}

bool agree(const costmodel::Timeline& timeline) {
  const costmodel::Spread spread = costmodel::spread_of(costmodel::round_durations_s(timeline.round_end_s));
  return spread.mean_high - spread.mean <= kNarrow * spread.mean;
}

}  // namespace

SimulatedRun simulate_scenario(const costmodel::Scenario& scenario, const RunOptions& options) {
  return simulate_plan(scenario, costmodel::make_plan(scenario), options);
}

SimulatedRun simulate_plan(const costmodel::Scenario& scenario, costmodel::Plan plan,
                           const RunOptions& options) {
  SimulatedRun run;
  run.plan = std::move(plan);
  const costmodel::OperationSeconds operations(scenario, run.plan);
  const ComputeSeconds seconds = [&](const costmodel::Compute& compute, costmodel::NodeId node,
                                     std::int64_t round,
                                     costmodel::OpId op) { return operations.of(compute, node, round, op); };
  Options simulation;
  simulation.bundle = options.bundle;
  simulation.record_flows = options.record_flows;
  simulation.pieces = costmodel::pieces_of(scenario, run.plan);
  simulation.network = scenario.network;
  simulation.seed = scenario.seed;
  // Jitter makes every round a sample of its own, and so do links that change and steps that vary.
  const bool noise =
      scenario.network.jitter_s > 0 || !scenario.platform.changes.empty() || scenario.variation.varies();
  if (noise)
    for (costmodel::RoundClass& round_class : run.plan.classes) round_class.identical = false;

  for (const costmodel::RoundClass& round_class : run.plan.classes)
    run.executed.push_back(executed_rounds(round_class, options));
  run.senders = senders_of(scenario.network, run, seconds);
  simulation.senders = run.senders;
  const platforms::Platform platform =
      costmodel::effective_platform(scenario.platform, scenario.network, run.senders);
  const std::vector<std::vector<std::int64_t>> usual = run.executed;
  if (!noise && run.senders == costmodel::Senders::averaged && !options.all_rounds && !options.rounds) {
    for (std::size_t c = 0; c < usual.size(); ++c) {
      const costmodel::RoundClass& round_class = run.plan.classes[c];
      if (!round_class.identical && !round_class.overlapping && usual[c].size() > kFewestRandomRounds)
        run.executed[c].resize(kFewestRandomRounds);
    }
  }
  std::vector<costmodel::Timeline> timelines =
      simulate_each(run.plan, run.executed, platform, seconds, simulation);
  for (std::size_t c = 0; c < usual.size(); ++c) {
    if (run.executed[c].size() == usual[c].size() || agree(timelines[c])) continue;
    run.executed[c] = usual[c];
    timelines[c] = simulate(run.plan, usual[c], platform, seconds, simulation);
  }
  if (options.seen_flows)
    for (costmodel::Timeline& timeline : timelines)
      timeline.flows = costmodel::seen_flows(timeline.intervals);
  run.report = costmodel::assemble_report(scenario, run.plan, timelines, run.senders);
  run.report.executor = "simulated";
  for (std::size_t c = 0; c < timelines.size(); ++c) {
    run.report.notes.push_back(
        "simulated " + std::to_string(timelines[c].rounds.size()) + " of " +
        std::to_string(run.plan.classes[c].count) + " rounds of " +
        std::to_string(run.plan.classes[c].steps) + " steps" +
        (run.plan.classes[c].identical ? "" : "; the rounds differ, so these are a sample"));
  }
  if (run.senders == costmodel::Senders::one_by_one)
    run.report.notes.emplace_back(
        "each bbr sender was simulated individually, with its probes and its slow growth into bandwidth that "
        "other senders release");
  run.timeline = costmodel::concatenated(timelines);
  return run;
}

}  // namespace fomoe::sim
