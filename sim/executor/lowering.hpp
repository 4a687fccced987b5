// From a transfer to the flows of each node, step by step.
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

/// Flows in the order of their steps. A node starts a step when all that it sends and receives in its steps
/// before has ended; channels of a transfer run side by side.
struct Channel {
  std::vector<Flow> flows;
  std::int32_t steps = 0;
  std::int32_t steps_per_call = 1;  // of a collective: every so many steps another call begins
};

struct LoweringOptions {
  bool bundle = true;
  costmodel::RingModel ring_model = costmodel::RingModel::stepwise;
  costmodel::Pieces pieces = {};  // of payloads, each a call; none: one call sends everything
};

/// Bundled: one channel, in which flows of the same step from one node to another are one flow, as over one
/// connection per pair. Otherwise each exchange is a channel of its own, with its own flows. Bytes per
/// (sender, receiver) are the same. Finishing times are not quite: max-min sharing counts flows, not bytes,
/// so a pair that has more to send than others gets no larger share. Where owners are drawn at random and
/// experts dominate the payload, bundling was seen to add 16 % with 32 expert groups, 4 % with 256 (M = 8);
/// nothing where loads are equal. Flows of no bytes are left out.
///
/// In pieces, each piece of the payloads of an exchange is a call of the collective by itself; a node starts
/// the next call when it has ended its part of the one before.
///
/// Who sends what in a step: costmodel/collective_steps.hpp. A fluid ring sends the bytes of all its steps as
/// one flow to the next node: a ring that is pipelined in slices, whose latency hides behind the chunk
/// before. It pays the latency of a hop once.
std::vector<Channel> lower(const costmodel::Transfer& transfer, int nodes, const LoweringOptions& options);

}  // namespace fomoe::sim
