// Executes rounds of a plan on a platform in SimGrid, and returns the timeline. It knows operations and
// flows, but no training method by name.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "costmodel/plan/attendance.hpp"
#include "costmodel/plan/plan.hpp"
#include "costmodel/timeline/timeline.hpp"
#include "platforms/platform.hpp"
#include "sim/executor/lowering.hpp"

namespace fomoe::sim {

/// How far the execution of a sequence of rounds has come.
struct SimulationProgress {
  double simulated_s = 0;
  std::size_t rounds_finished = 0, rounds = 0;
  bool ended = false;  // whether the simulation has succeeded
};

struct Options {
  bool bundle = true;             // see lower()
  costmodel::Pieces pieces = {};  // see lower()
  costmodel::NetworkModel network = {};
  std::uint64_t seed = 0;                      // seed of jitter
  bool record_flows = false;                   // whether the timeline records every single flow
  costmodel::AttendanceRules attendance = {};  // rounds without slow or stopped nodes; their plan allows it
  /// Called every 0.2 s while the simulation runs, and when it has succeeded.
  std::function<void(const SimulationProgress&)> on_progress = {};
};

/// Returns the seconds that a node computes for an operation, summed over its repeats. `round` is the index
/// of the round in the plan.
using ComputeSeconds = std::function<double(const costmodel::Compute& compute, costmodel::NodeId node,
                                            std::int64_t round, costmodel::OpId op)>;

/// Executes the given rounds of the plan one after another, from the start of the run. Each node goes from
/// round to round by itself, without a barrier. The simulation runs in a child process, because SimGrid
/// supports one engine per process; the caller must not have started threads. Throws std::runtime_error if
/// the simulation fails or the child dies. `platform` must be the effective platform
/// (costmodel::effective_platform); here, only the parts of the network model that concern single flows and
/// collectives are applied to it.
costmodel::Timeline simulate(const costmodel::Plan& plan, const std::vector<std::int64_t>& rounds,
                             const platforms::Platform& platform, const ComputeSeconds& seconds,
                             const Options& options = {});

/// Rounds that are executed one after another on a network that has carried nothing yet.
struct Sequence {
  std::vector<std::int64_t> rounds;
  /// What the clock of the changes of links shows at the start (platforms/link_changes.hpp), in seconds.
  double changes_clock_s = 0;
  /// Number of rounds during which that clock stands still, so that the round after them starts with the
  /// network in use and the links as they are at changes_clock_s. It runs from when all nodes have started
  /// that round.
  std::size_t held_rounds = 0;
  std::uint64_t stream = 0;  // sequences of different streams have different random draws of jitter
};

/// Executes several sequences, and returns one timeline for each; each starts at time 0. Everything else is
/// as in simulate().
std::vector<costmodel::Timeline> simulate_each(const costmodel::Plan& plan,
                                               const std::vector<Sequence>& sequences,
                                               const platforms::Platform& platform,
                                               const ComputeSeconds& seconds, const Options& options = {});

}  // namespace fomoe::sim
