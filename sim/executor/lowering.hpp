// Lowering: turns a transfer of a plan into point-to-point flows, ordered by the steps of its collective.
#pragma once
#include <cstdint>
#include <vector>

#include "costmodel/plan/pieces.hpp"
#include "costmodel/plan/plan.hpp"

namespace fomoe::sim {

struct Flow {
  costmodel::NodeId from = 0, to = 0;
  std::int32_t step = 0;
  std::int64_t bytes = 0;
};

/// A sequence of flows in the order of their steps. A node starts a step when all flows that it sends and
/// receives in its earlier steps have ended. The channels of a transfer run concurrently.
struct Channel {
  std::vector<Flow> flows;
  std::int32_t steps = 0;
  std::int32_t steps_per_call = 1;  // steps of one call of the collective; the next call follows it
};

struct LoweringOptions {
  bool bundle = true;
  costmodel::RingModel ring_model = costmodel::RingModel::stepwise;
  costmodel::Pieces pieces =
      {};  // cuts payloads into one call per piece; if empty, one call sends everything
};

/// Turns a transfer between `nodes` nodes into channels of flows. Flows of zero bytes are left out.
///
/// With `bundle` there is one channel for all exchanges with equally many steps, and all bytes of a step from
/// one node to another are one flow, as over one connection per pair. Without `bundle`, each exchange is a
/// channel with its own flows. Both choices send the same bytes per (sender, receiver) pair, but the
/// finishing times differ slightly. The reason is that max-min sharing counts flows, not bytes: a pair that
/// has more to send than others gets no larger share. If owners are drawn at random and experts dominate the
/// payload, bundling added 16 % to the time with 32 expert groups, and 4 % with 256 (8 sites). Bundling adds
/// nothing if loads are equal.
///
/// With `pieces`, each piece of the payloads of an exchange is a separate call of the collective. A node
/// starts the next call when it has ended its part of the previous one.
///
/// Through a store, each object is a channel: what the same nodes exchange, and in an all-to-all broadcast
/// what one of them sends. The bytes of an object are one flow from each node to the store, and one to each.
///
/// costmodel/plan/collective_steps.hpp defines who sends what in a step. With RingModel::fluid, a node sends
/// the bytes of all steps of a ring as one flow to the next node. This models a ring that is pipelined in
/// slices: transfers hide the latencies, so each hop pays its latency only once.
std::vector<Channel> lower(const costmodel::Transfer& transfer, int nodes, const LoweringOptions& options);

}  // namespace fomoe::sim
