// Simulates a whole scenario: chooses the rounds to execute, executes them, and makes the report of the run
// from their timelines.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "costmodel/inputs/network_model.hpp"
#include "costmodel/inputs/scenario.hpp"
#include "costmodel/report/run_report.hpp"
#include "costmodel/timeline/timeline.hpp"
#include "sim/executor/simulate.hpp"
#include "sim/executor/simulation_size.hpp"

namespace fomoe::sim {

struct RunOptions {
  /// Number of rounds to execute of each class of rounds. By default, identical rounds are executed 3 times,
  /// or 8 times if they overlap. If the windows of connections are simulated, all rounds are executed if that
  /// takes at most a tenth of `most_flows`, and what is executed is executed up to five times (windows.hpp).
  /// Rounds that differ, because placements are random, steps vary, latencies jitter or links change, are all
  /// executed if that takes at most `most_flows` flows. Otherwise, if links change, rounds that start at
  /// chosen times are executed (changing_rounds.hpp); if they do not, rounds are executed until the 95 %
  /// confidence interval of the mean round is within `precision`, or until `most_flows`. If links change, a
  /// given number is the number of rounds that are executed altogether, approximately.
  std::optional<std::int64_t> rounds;
  std::int64_t most_flows = 300'000;  // about one second of CPU time
  std::int64_t fewest_rounds = 8;     // smallest sample of rounds whose placements are random
  double precision = 0.002;           // half-width of the interval ÷ mean round
  bool all_rounds = false;            // execute every round of the run
  bool bundle = true;                 // see lower()
  bool record_flows = false;          // whether the timeline records every single flow
  std::function<void(const SimulationProgress&)> on_progress = {};  // see Options::on_progress
  std::function<void(const SimulationSize&)> on_size = {};  // called before the first round is simulated
  /// Makes the report as for a run that cannot observe its bytes: see costmodel/timeline/seen_flows.hpp.
  bool seen_flows = false;
};

struct SimulatedRun {
  costmodel::RunReport report;
  costmodel::Plan plan;
  costmodel::Timeline timeline;                     // timeline of the executed rounds
  std::vector<std::vector<std::int64_t>> executed;  // [class]: indices of the executed rounds
};

/// Simulates the given plan on the scenario's platform, with the scenario's step times. Throws InputError if
/// options.rounds asks for more rounds than the plan describes, or if a round has more than kMostFlowsOfRound
/// flows, and std::runtime_error if the simulation
/// fails.
SimulatedRun simulate_plan(const costmodel::Scenario& scenario, costmodel::Plan plan,
                           const RunOptions& options = {});

/// Simulates the plan that the scenario itself defines. What absent sites lose is trained later: the plan
/// then has as many more steps as the scenario's tokens need (Attendance::added_rounds).
SimulatedRun simulate_scenario(const costmodel::Scenario& scenario, const RunOptions& options = {});

}  // namespace fomoe::sim
