// How large a simulation is, counted before it begins, so that a long one can be announced and an endless one
// refused.
#pragma once
#include "costmodel/plan/plan.hpp"
#include "sim/executor/lowering.hpp"

namespace fomoe::sim {

struct SimulationSize {
  double flows = 0;    // of the rounds that are counted, of all nodes
  double at_once = 0;  // most flows of one step of a transfer
  /// Estimate of the CPU time, within a factor of about 3: see simulation_seconds().
  double seconds = 0;
  SimulationSize& operator+=(const SimulationSize& other);
};

/// Counts the flows of one round. `links_differ`: whether flows of a step end at different times.
SimulationSize size_of(const costmodel::RoundPlan& round, const LoweringOptions& options, bool links_differ);

/// CPU time of a number of flows of which `at_once` run together: each costs its own time, and whenever flows
/// end, the shares of all that run are computed again. Measured with SimGrid 3.32 for rings of 50 to 1,000
/// sites and direct exchanges among 10 to 80 (of equal sites and of cloud regions), on a machine that did
/// other work.
double simulation_seconds(double flows, double at_once, bool links_differ);

/// The flows of one round above which a simulation is refused: they would need about 10 GB of memory.
inline constexpr double kMostFlowsOfRound = 3e7;

}  // namespace fomoe::sim
