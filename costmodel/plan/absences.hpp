// Rounds without some of the nodes, because their sites were lost.
//
// The other nodes keep their numbers, their experts and their sequences. They average among themselves: a
// mean is over the nodes that are present. An expert whose owners are all absent is trained and sent by
// nobody.
#pragma once
#include <string>
#include <vector>

#include "costmodel/plan/plan.hpp"

namespace fomoe::costmodel {

/// The name of an operation that needs all nodes, so that `without` does not apply to the plan; empty if
/// there is none. Such operations migrate experts, send chunks of a hierarchical reduction, or halve and
/// double. Plans whose placement changes migrate experts.
std::string needs_all_nodes(const Plan& plan);

/// By node: whether the others cannot go on without it, because it is one end of a broadcast, a reduction or
/// a transfer between two nodes.
std::vector<bool> indispensable_nodes(const Plan& plan);

/// Whether the node computes in the operation, sends or receives.
bool takes_part(const Op& op, NodeId node);

/// The round without the computations of absent nodes and without their parts in exchanges. An all-reduce
/// with one node left stays: what the node has is its average, and nothing is sent. Other exchanges with
/// fewer than two nodes left are left out. `absent` is indexed by node; no absent node may be indispensable.
RoundPlan without(RoundPlan round, const std::vector<bool>& absent);

}  // namespace fomoe::costmodel
