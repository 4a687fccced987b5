// A whole scenario, simulated: which rounds to execute, and the report made of what was observed.
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
  /// Rounds executed of each class of rounds; default 3 where they are identical, 8 where they are random or
  /// overlap, 32 where they do both; of random placements without other noise 4, where the 95 % confidence
  /// interval of their mean is then within 1 % (not of a run with bbr that has no more than 8). Overlapping
  /// ones are at least 5, and more where rounds wait for others further back.
  std::optional<std::int64_t> rounds;
  bool all_rounds = false;    // execute every round of the run
  bool bundle = true;         // see lower()
  bool record_flows = false;  // one by one, in the timeline
  bool seen_flows =
      false;  // the report as of a run that cannot see its bytes: see costmodel/timeline/seen_flows.hpp
};

struct SimulatedRun {
  costmodel::RunReport report;
  costmodel::Plan plan;
  costmodel::Timeline timeline;                     // of the executed rounds, one class after another
  std::vector<std::vector<std::int64_t>> executed;  // rounds of each class
  costmodel::Senders senders = costmodel::Senders::averaged;
};

/// The plan of any origin, on the scenario's platform with its step times.
SimulatedRun simulate_plan(const costmodel::Scenario& scenario, costmodel::Plan plan,
                           const RunOptions& options = {});

SimulatedRun simulate_scenario(const costmodel::Scenario& scenario, const RunOptions& options = {});

}  // namespace fomoe::sim
