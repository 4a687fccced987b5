// Simulates a whole scenario: chooses the rounds to execute, executes them, and makes the report of the run
// from their timelines.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "costmodel/inputs/network_model.hpp"
#include "costmodel/inputs/scenario.hpp"
#include "costmodel/report/run_report.hpp"
#include "costmodel/timeline/timeline.hpp"

namespace fomoe::sim {

struct RunOptions {
  /// Number of rounds to execute of each class of rounds. The default is 3 if the rounds are identical, 8 if
  /// they are random or overlap, and 32 if they are both. For random placements without other noise the
  /// default is 4, provided that the 95 % confidence interval of the mean of these 4 is within 1 %; this does
  /// not apply to runs whose BBR senders are simulated one by one. At least 5 overlapping rounds are
  /// executed, and by default more if rounds wait for rounds further back.
  std::optional<std::int64_t> rounds;
  bool all_rounds = false;    // execute every round of the run
  bool bundle = true;         // see lower()
  bool record_flows = false;  // whether the timeline records every single flow
  /// Makes the report as for a run that cannot observe its bytes: see costmodel/timeline/seen_flows.hpp.
  bool seen_flows = false;
};

struct SimulatedRun {
  costmodel::RunReport report;
  costmodel::Plan plan;
  costmodel::Timeline timeline;  // timeline of the executed rounds, one class after another
  std::vector<std::vector<std::int64_t>> executed;  // [class]: indices of the executed rounds
  costmodel::Senders senders = costmodel::Senders::averaged;
};

/// Simulates the given plan on the scenario's platform, with the scenario's step times. Throws InputError if
/// options.rounds asks for more rounds than the plan describes, and std::runtime_error if the simulation
/// fails.
SimulatedRun simulate_plan(const costmodel::Scenario& scenario, costmodel::Plan plan,
                           const RunOptions& options = {});

/// Simulates the plan that the scenario itself defines.
SimulatedRun simulate_scenario(const costmodel::Scenario& scenario, const RunOptions& options = {});

}  // namespace fomoe::sim
