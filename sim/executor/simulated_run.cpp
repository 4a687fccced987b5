#include "sim/executor/simulated_run.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "costmodel/compose/make_plan.hpp"
#include "costmodel/compute/operation_seconds.hpp"
#include "costmodel/compute/site_times.hpp"
#include "costmodel/math/replicas.hpp"
#include "costmodel/plan/method.hpp"
#include "costmodel/plan/pieces.hpp"
#include "costmodel/timeline/class_mean.hpp"
#include "costmodel/timeline/report_assembly.hpp"
#include "costmodel/timeline/seen_flows.hpp"
#include "costmodel/value/attendance_rules.hpp"
#include "platforms/each_path.hpp"
#include "platforms/support/input_error.hpp"
#include "sim/executor/changing_rounds.hpp"
#include "sim/executor/lost_work.hpp"
#include "sim/executor/rounds_of_class.hpp"
#include "sim/executor/simulate.hpp"
#include "sim/executor/windows.hpp"

namespace fomoe::sim {

namespace {

constexpr std::int64_t kGrowth = 4;  // factor by which a sample grows until its interval is narrow
// Rounds that differ only by the windows of connections are all executed if that takes at most this share of
// RunOptions::most_flows.
constexpr double kWindowsShare = 0.1;

/// One simulation of a scenario: see RunOptions::rounds.
class Simulation {
 public:
  Simulation(const costmodel::Scenario& scenario, costmodel::Plan plan, const RunOptions& options)
      : scenario_(scenario), options_(options), operations_(scenario, plan) {
    run_.plan = std::move(plan);
    seconds_ = [this](const costmodel::Compute& compute, costmodel::NodeId node, std::int64_t round,
                      costmodel::OpId op) { return operations_.of(compute, node, round, op); };
    simulation_.bundle = options.bundle;
    simulation_.record_flows = options.record_flows;
    simulation_.on_progress = options.on_progress;
    simulation_.pieces = costmodel::pieces_of(scenario, run_.plan);
    simulation_.network = scenario.network;
    simulation_.seed = scenario.seed;
    simulation_.attendance = costmodel::attendance_rules(scenario, run_.plan);
    random_ = scenario.network.jitter_s > 0 || scenario.variation.varies() ||
              std::any_of(run_.plan.classes.begin(), run_.plan.classes.end(),
                          [](const auto& kind) { return !kind.identical; });
    if (noise())
      for (costmodel::RoundClass& round_class : run_.plan.classes) round_class.identical = false;
    // Sites whose steps differ drift against each other over many rounds if they do not wait for each other.
    if (costmodel::step_times_differ(scenario)) {
      for (costmodel::RoundClass& round_class : run_.plan.classes)
        if (round_class.overlapping) round_class.identical = false;
    }
  }

  SimulatedRun run() && {
    for (const costmodel::RoundClass& round_class : run_.plan.classes) check_known(round_class, options_);
    check_size();
    choose_windows();
    if (executes_all()) {
      execute_all();
    } else if (changes()) {
      execute_sample_over_time();
    } else {
      execute_classes();
    }
    for (const costmodel::Outage& outage : simulation_.attendance.outages) {
      if (outage.start_s < run_.report.wall_clock_s) continue;
      run_.report.notes.push_back("the outage of " +
                                  scenario_.platform.sites[static_cast<std::size_t>(outage.site)].name +
                                  " begins after the end of the run");
    }
    run_.report.executor = "simulated";
    add_range();
    return std::move(run_);
  }

 private:
  /// Counts the flows of the rounds that will at least be executed, says so, and refuses too many.
  void check_size() const {
    // With few sites and whole payloads, a round of partial replicas has few flows, and making its plan once
    // more takes as long as simulating it.
    constexpr std::size_t kFewNodes = 24;
    if (run_.plan.nodes.size() < kFewNodes && !simulation_.pieces &&
        scenario_.strategy.method->partial_experts)
      return;
    LoweringOptions lowering;
    lowering.bundle = options_.bundle;
    lowering.ring_model = scenario_.network.ring_model;
    lowering.pieces = simulation_.pieces;
    const bool differ = platforms::links_differ(scenario_.platform) || noise();
    SimulationSize all;
    for (const costmodel::RoundClass& kind : run_.plan.classes) {
      const SimulationSize one = size_of(run_.plan.round(kind.round_at(0)), lowering, differ);
      if (one.flows > kMostFlowsOfRound) {
        const bool cut = scenario_.strategy.bucket_bytes > 0;
        throw InputError(cut ? "strategy.bucket_bytes" : "platform.sites",
                         "a simulation with about " + std::to_string(std::llround(one.flows / 1e6)) +
                             " million flows in a round",
                         "at most " + std::to_string(std::llround(kMostFlowsOfRound / 1e6)) +
                             " million: larger buckets, fewer sites, or the closed form",
                         cut ? "strategy.bucket_bytes = \"25MB\"" : "--engine closed-form");
      }
      const auto rounds = static_cast<double>(
          options_.all_rounds
              ? kind.count
              : static_cast<std::int64_t>(
                    first_rounds(kind, options_.rounds.value_or(usual_rounds(kind, options_))).size()));
      all += {rounds * one.flows, one.at_once, rounds * one.seconds};
    }
    if (options_.on_size) options_.on_size(all);
  }

  [[nodiscard]] bool changes() const { return !scenario_.platform.changes.empty(); }
  /// Jitter makes every round a sample of its own, and so do links that change, steps that vary, and rounds
  /// that go on without some sites.
  [[nodiscard]] bool noise() const {
    return changes() || scenario_.network.jitter_s > 0 || scenario_.variation.varies() ||
           simulation_.attendance.any();
  }

  /// Whether the windows of connections are simulated. They make the first round on a new network longer. A
  /// shorter last round, which is a class of its own, does not start on a new network.
  [[nodiscard]] bool windows() const { return simulation_.network.initial_window_bytes.has_value(); }

  /// Leaves the windows out if a round has too many bytes for them. Its transfers are then so long that their
  /// beginnings matter little: what the windows leave of the links in the long run is found from shorter
  /// ones.
  void choose_windows() {
    if (!windows()) return;
    constexpr double kShorter = 0.5;  // of most_flows
    const Sequence usual = usual_rounds_of_run();
    windows_cost_ = windows_cost(run_.plan, usual, platform(), seconds_, simulation_);
    const auto most = static_cast<double>(options_.most_flows);
    if (options_.all_rounds || windows_cost_ <= most) return;
    const double share = kShorter * most / windows_cost_;
    const platforms::Platform with_windows = platform();
    const Options as_windows = simulation_;
    simulation_.network.initial_window_bytes.reset();
    windows_cost_ = 0;
    const bool overlap = std::any_of(run_.plan.classes.begin(), run_.plan.classes.end(),
                                     [](const auto& kind) { return kind.overlapping; });
    windows_note_ =
        "the windows of connections are not simulated one by one, because a round has too many bytes: ";
    std::optional<double> rate;
    if (!overlap && !noise())
      rate = long_run_rate(run_.plan, usual.rounds.front(), share, with_windows, platform(), seconds_,
                           as_windows);
    if (rate) {
      rate_ = *rate;
      windows_note_ += "links carry " + std::to_string(std::lround(100 * rate_)) +
                       " % of what they would without windows, as in the last half of a round with " +
                       std::to_string(std::max(1L, std::lround(100 * share))) + " % of the bytes";
    } else {
      windows_note_ += "connections have what their buffers and losses allow in the long run";
    }
    windows_note_ += "; --rounds all simulates them";
  }

  /// How often the rounds of these sequences are simulated, for the range of the answer.
  [[nodiscard]] int times(const std::vector<Sequence>& sequences) const {
    constexpr int kMostRuns = 5;
    constexpr double kShare = 0.3;  // of most_flows
    double rounds = 0;
    for (const Sequence& sequence : sequences) rounds += static_cast<double>(sequence.rounds.size());
    const double affordable =
        kShare * static_cast<double>(options_.most_flows) / std::max(1.0, rounds * windows_cost_);
    return affordable >= kMostRuns ? kMostRuns : affordable >= 3 ? 3 : 1;
  }

  std::vector<costmodel::Timeline> simulated(const std::vector<Sequence>& sequences) {
    if (!windows()) return simulate_each(run_.plan, sequences, platform(), seconds_, simulation_);
    times_ = times(sequences);
    return simulate_typical(run_.plan, sequences, platform(), seconds_, simulation_, times_, range_);
  }

  void add_range() {
    if (!windows_note_.empty()) run_.report.notes.push_back(windows_note_);
    if (times_ <= 1) return;
    const double wall_clock_s = run_.report.wall_clock_s;
    run_.report.wall_clock_range_s = {range_.low * wall_clock_s, range_.high * wall_clock_s};
  }

  /// Some rounds in the middle of the largest class: the first ones of methods that overlap send less, and
  /// single rounds of asynchronous methods may send nothing.
  [[nodiscard]] Sequence usual_rounds_of_run() const {
    constexpr std::int64_t kMost = 3;
    const auto kind = std::max_element(run_.plan.classes.begin(), run_.plan.classes.end(),
                                       [](const auto& a, const auto& b) { return a.count < b.count; });
    const std::int64_t known = std::min(kind->count, kind->known.value_or(kind->count));
    // A slow worker that trains at its own pace sends in few of the rounds.
    constexpr std::int64_t kMostOfOwnPace = 50;
    const std::int64_t wanted = kind->own_pace                          ? std::min(kMostOfOwnPace, known)
                                : kind->identical && !kind->overlapping ? 1
                                                                        : std::min(kMost, known);
    Sequence sequence;
    for (std::int64_t i = 0; i < wanted; ++i)
      sequence.rounds.push_back(kind->round_at((known - wanted) / 2 + i));
    return sequence;
  }

  /// How many rounds like the executed ones may be executed, by RunOptions::most_flows. Each node's part of
  /// an operation costs as much as a flow, and so do a few groups of a plan that have many.
  [[nodiscard]] std::int64_t affordable_rounds(const costmodel::Timeline& timeline) const {
    constexpr double kGroupsPerFlow = 2;
    double groups = 0;
    for (const costmodel::Op& op : run_.plan.round(timeline.rounds.front()).ops) {
      if (const auto* transfer = std::get_if<costmodel::Transfer>(&op.what))
        groups += static_cast<double>(transfer->exchanges.size());
    }
    const auto executed = static_cast<double>(timeline.flows.size() + timeline.intervals.size());
    const double flows =
        executed / static_cast<double>(timeline.rounds.size()) + groups / kGroupsPerFlow + windows_cost_;
    return static_cast<std::int64_t>(static_cast<double>(options_.most_flows) / std::max(1.0, flows));
  }

  [[nodiscard]] platforms::Platform platform() const {
    const platforms::Platform raw = platforms::with_store_as_site(scenario_.platform);
    const platforms::Platform effective = windows()
                                              ? costmodel::platform_of_connections(raw, scenario_.network)
                                              : costmodel::effective_platform(raw, scenario_.network);
    return costmodel::platform_of(run_.plan, platforms::scaled_bandwidth(effective, rate_));
  }

  bool executes_all() {
    if (options_.all_rounds || !simulation_.attendance.outages.empty()) return true;
    if (options_.rounds || !(noise() || windows())) return false;
    const auto& classes = run_.plan.classes;
    const bool known = std::all_of(classes.begin(), classes.end(), [](const auto& kind) {
      return kind.known.value_or(kind.count) >= kind.count;
    });
    most_rounds_ = affordable_rounds(
        simulate(run_.plan, usual_rounds_of_run().rounds, platform(), seconds_, simulation_));
    const double share = noise() ? 1 : kWindowsShare;
    return known && static_cast<double>(run_.plan.rounds) <= share * static_cast<double>(most_rounds_);
  }

  /// Executes every round in the order of the plan.
  void execute_all() {
    std::vector<std::int64_t> rounds(static_cast<std::size_t>(run_.plan.rounds));
    std::iota(rounds.begin(), rounds.end(), 0);
    for (const costmodel::RoundClass& kind : run_.plan.classes)
      run_.executed.push_back(first_rounds(kind, kind.count));
    costmodel::Plan in_order = run_.plan;
    in_order.classes = {run_.plan.classes.front()};
    in_order.classes[0].count = run_.plan.rounds;
    in_order.classes[0].round_at = [](std::int64_t i) { return i; };
    finish(in_order, simulated({{rounds, platform().changes_start_s, 0, 0}}));
    run_.report.notes.push_back("simulated all " + std::to_string(run_.plan.rounds) + " rounds");
  }

  void execute_sample_over_time() {
    for (const costmodel::RoundClass& kind : run_.plan.classes)
      run_.executed.push_back(first_rounds(kind, 1));
    ChangingRounds sampled = sample_changing_rounds(run_.plan, platform(), seconds_, simulation_,
                                                    options_.rounds.value_or(most_rounds_), random_);
    run_.executed = std::move(sampled.executed);
    for (costmodel::RoundSample& sample : sampled.samples)
      if (options_.seen_flows) sample.timeline.flows = costmodel::seen_flows(sample.timeline.intervals);
    run_.report = costmodel::assemble_report(scenario_, run_.plan, sampled.samples, sampled.doubt_s);
    std::vector<costmodel::Timeline> timelines;
    std::size_t executed = 0;
    for (costmodel::RoundSample& sample : sampled.samples) {
      executed += sample.timeline.rounds.size();
      timelines.push_back(std::move(sample.timeline));
    }
    run_.timeline = costmodel::concatenated(timelines);
    run_.report.notes.push_back(
        "simulated " + std::to_string(executed) + " of " + std::to_string(run_.plan.rounds) + " rounds, " +
        (sampled.gapless ? "from the start of the run over many periods of the trace"
                         : "at " + std::to_string(sampled.start_times) + " times of the trace") +
        ", because the links change; --rounds all executes every round");
  }

  /// Windows that no silence shrinks go on growing and losing from round to round, which a few rounds do not
  /// show.
  [[nodiscard]] std::int64_t first_sample(const costmodel::RoundClass& kind) const {
    constexpr std::int64_t kOfLastingWindows = 12;
    const std::int64_t usual = usual_rounds(kind, options_);
    if (!windows() || scenario_.network.idle_restart) return usual;
    const auto affordable =
        static_cast<std::int64_t>(static_cast<double>(options_.most_flows) / std::max(1.0, windows_cost_));
    return std::max(usual, std::min({kOfLastingWindows, affordable, kind.count}));
  }

  /// Executes some rounds of each class.
  void execute_classes() {
    for (const costmodel::RoundClass& kind : run_.plan.classes)
      run_.executed.push_back(first_rounds(kind, options_.rounds.value_or(first_sample(kind))));
    std::vector<Sequence> sequences;
    for (const auto& rounds : run_.executed) sequences.push_back({rounds, 0, 0, 0});
    std::vector<costmodel::Timeline> timelines = simulated(sequences);
    for (std::size_t c = 0; c < timelines.size(); ++c) {
      const costmodel::RoundClass& kind = run_.plan.classes[c];
      if (options_.rounds || kind.identical) continue;
      const std::int64_t most = affordable_rounds(timelines[c]);
      // A few rounds may all lack a rare event, so a sample with noise is as large as allowed.
      const bool all_at_once = noise() || kind.overlapping;
      auto wanted = static_cast<std::int64_t>(run_.executed[c].size());
      while (wanted < std::min(most, kind.count) &&
             (all_at_once || !agree(timelines[c], options_.precision))) {
        wanted = all_at_once ? most : std::min(most, kGrowth * wanted);
        std::vector<std::int64_t> rounds = first_rounds(kind, wanted);
        if (rounds.size() == run_.executed[c].size()) break;
        run_.executed[c] = std::move(rounds);
        timelines[c] = simulate(run_.plan, run_.executed[c], platform(), seconds_, simulation_);
      }
    }
    finish(run_.plan, std::move(timelines));
    for (std::size_t c = 0; c < run_.executed.size(); ++c) {
      const costmodel::RoundClass& kind = run_.plan.classes[c];
      run_.report.notes.push_back("simulated " + std::to_string(run_.executed[c].size()) + " of " +
                                  std::to_string(kind.count) + " rounds of " + std::to_string(kind.steps) +
                                  " steps" +
                                  (kind.identical || std::ssize(run_.executed[c]) == kind.count
                                       ? ""
                                       : "; the rounds differ, so these are a sample"));
    }
  }

  void finish(const costmodel::Plan& plan, std::vector<costmodel::Timeline> timelines) {
    if (options_.seen_flows)
      for (costmodel::Timeline& timeline : timelines)
        timeline.flows = costmodel::seen_flows(timeline.intervals);
    run_.report = costmodel::assemble_report(scenario_, plan, timelines);
    run_.timeline = costmodel::concatenated(timelines);
  }

  const costmodel::Scenario& scenario_;
  const RunOptions& options_;
  const costmodel::OperationSeconds operations_;
  ComputeSeconds seconds_;
  Options simulation_;
  double windows_cost_ = 0;  // of a round, in flows
  double rate_ = 1;          // of transfers whose windows are not simulated, see long_run_rate()
  int times_ = 1;            // how often the rounds were simulated
  EndRange range_;
  std::string windows_note_;
  bool random_ = false;  // rounds that start on the same network differ at random
  std::int64_t most_rounds_ = 0;
  SimulatedRun run_;
};

}  // namespace

SimulatedRun simulate_scenario(const costmodel::Scenario& scenario, const RunOptions& options) {
  const auto once = [&](const costmodel::Scenario& longer) {
    return simulate_plan(longer, costmodel::make_plan(longer), options);
  };
  return with_lost_work(scenario, once(scenario), once);
}

SimulatedRun simulate_plan(const costmodel::Scenario& scenario, costmodel::Plan plan,
                           const RunOptions& options) {
  return Simulation(scenario, std::move(plan), options).run();
}

}  // namespace fomoe::sim
