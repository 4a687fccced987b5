// The simulated executor: a plan on a platform, in SimGrid. Knows operations and flows, no method's name.
#pragma once
#include <cstdint>
#include <functional>
#include <vector>

#include "costmodel/plan/plan.hpp"
#include "costmodel/timeline/timeline.hpp"
#include "platforms/platform.hpp"
#include "sim/executor/lowering.hpp"

namespace fomoe::sim {

struct Options {
  bool bundle = true;             // see lower()
  costmodel::Pieces pieces = {};  // see lower()
  costmodel::NetworkModel network = {};
  /// one_by_one: probes of bbr happen when they are due, and paces are simulated; for few nodes, since every
  /// pair gets a link of its own.
  costmodel::Senders senders = costmodel::Senders::averaged;
  std::uint64_t seed = 0;     // of jitter, and of chance among senders
  bool record_flows = false;  // one by one, in the timeline
};

/// Seconds that a node computes for an operation, all its repeats; the round by its index in the plan.
using ComputeSeconds = std::function<double(const costmodel::Compute& compute, costmodel::NodeId node,
                                            std::int64_t round, costmodel::OpId op)>;

/// Executes the given rounds of the plan one after another, chained per node without a barrier.
/// Runs in a child process, because SimGrid supports one engine per process: call it before starting threads.
/// Throws std::runtime_error when the child dies. `platform` is the effective one; of the network model only
/// what concerns single flows and collectives is applied to it.
costmodel::Timeline simulate(const costmodel::Plan& plan, const std::vector<std::int64_t>& rounds,
                             const platforms::Platform& platform, const ComputeSeconds& seconds,
                             const Options& options = {});

/// The same of several sequences of rounds, each from time 0 on a network that has carried nothing yet.
std::vector<costmodel::Timeline> simulate_each(const costmodel::Plan& plan,
                                               const std::vector<std::vector<std::int64_t>>& sequences,
                                               const platforms::Platform& platform,
                                               const ComputeSeconds& seconds, const Options& options = {});

}  // namespace fomoe::sim
