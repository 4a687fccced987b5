// From a transfer to the flows of each node, step by step.
#pragma once
#include <cstdint>
#include <vector>

#include "costmodel/pieces.hpp"
#include "costmodel/plan.hpp"

namespace fomoe::sim {

struct Flow {
  costmodel::NodeId from = 0, to = 0;
  std::int32_t step = 0;
  std::int64_t bytes = 0;
};

/// Flows in the order of their steps. A node starts a step when all that it sends and receives in its steps
/// before has ended; lanes of a transfer run side by side.
struct Lane {
  std::vector<Flow> flows;
  std::int32_t steps = 0;
  std::int32_t steps_per_call = 1;  // of a collective: every so many steps another call begins
};

struct LoweringOptions {
  bool bundle = true;
  costmodel::RingModel ring_model = costmodel::RingModel::stepwise;
  costmodel::Pieces pieces = {};  // of payloads, each a call; none: one call sends everything
};

/// Bundled: one lane, in which flows of the same step from one node to another are one flow, as over one
/// connection per pair. Otherwise each exchange is a lane of its own, with its own flows. Bytes per (sender,
/// receiver) are the same. Finishing times are not quite: max-min sharing counts flows, not bytes, so a pair
/// that has more to send than others gets no larger share. Where owners are drawn at random and experts
/// dominate the payload, bundling was seen to add 16 % with 32 expert groups, 4 % with 256 (M = 8); nothing
/// where loads are equal. Flows of no bytes are left out.
///
/// In pieces, each piece of the payloads of an exchange is a call of the collective by itself; a node starts
/// the next call when it has ended its part of the one before.
///
/// Ring of n, node at position p (Patarasuk and Yuan 2009), chunk indices mod n:
///   all-reduce, step s = 0 … n−2:        sends chunk p − s to the next, receives chunk p − 1 − s
///               step s = n−1 … 2n−3:     sends chunk p + 1 − (s − n + 1)
///   reduce-scatter alone: chunk p − 1 − s, so that position p ends with the sum of chunk p
///   all-gather alone:     chunk p − s, starting from the own chunk p
/// A fluid ring sends the bytes of all these steps as one flow to the next node: a ring that is pipelined in
/// slices, whose latency hides behind the chunk before. It pays the latency of a hop once.
/// Recursive halving and doubling among n = 2ᵏ: in step s < k, position p sends to p xor n/2ˢ⁺¹ the chunks of
/// that one's half; then, step by step backwards, all chunks that it has the sum of. Direct among n: step 0
/// sends chunk j of the own copy to node j; step 1 sends the reduced own chunk to all.
std::vector<Lane> lower(const costmodel::Transfer& transfer, int nodes, const LoweringOptions& options);

}  // namespace fomoe::sim
