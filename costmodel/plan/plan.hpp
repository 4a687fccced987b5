// The plan: the computations of a run, and which nodes send which tensors to which others in which order.
//
// A round is a small directed graph of operations. An operation spans several nodes, and dependences hold
// *per node*: node n starts its part of an operation when its own parts of the operations in `after` have
// ended. There is no global barrier. Operations of one node that do not depend on each other run at the same
// time. A training method is a pure function from Scenario to Plan; executors do not know the names of
// methods.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "costmodel/inputs/scenario.hpp"
#include "costmodel/plan/placement.hpp"

namespace fomoe::costmodel {

using NodeId = int;
using GroupId = int;
using OpId = int;

/// worker: the GPUs of a site. server: a program at a site, beside its worker. store: the platform's store,
/// which has no GPUs and is at no site.
enum class NodeKind { worker, server, store };
struct Node {
  NodeKind kind = NodeKind::worker;
  int site = 0;          // of a store: the number of sites, see platforms::with_store_as_site()
  double sequences = 0;  // sequences of the node in one optimiser step
};

enum class Content {
  parameter,
  gradient,
  pseudo_gradient,
  moment1,
  moment2,
  outer_moment1,  // first moment of the outer optimiser (Adam, Yogi), or Nesterov's momentum
  outer_moment2,
  coefficient,  // of the transformed momentum (DeMo)
  activation,
  sequences,
  training_state,
  key
};
// embedding: both tables, unless a plan sends an untied unembedding as a group of its own
enum class TensorClass { embedding, attention, norm, router, expert, unembedding };

/// Parameters that are sent together. The trainer finds their tensors by class, layers and experts.
struct TensorGroup {
  std::vector<TensorClass> classes;
  std::int64_t layer_begin = 0, layer_end = 0;    // [begin, end)
  std::int64_t expert_begin = 0, expert_end = 0;  // [begin, end); applies to router columns and experts only
  std::int64_t elements = 0;                      // sum over classes, layers and experts
};

/// The category of the bytes in reports.
enum class TrafficClass { dense, expert_sync, migration, data, checkpoint, rejoin, activation };

/// The elements of some groups as one flat buffer in the order of the groups, or one chunk of that buffer.
/// Activations belong to no group.
struct Payload {
  Content content = Content::parameter;
  TrafficClass traffic = TrafficClass::dense;
  std::vector<GroupId> groups;
  WireFormat format;
  std::int64_t elements = 0;  // elements of the chunk
  int chunk = 0, chunks = 1;
  /// Format of what comes back from an all-reduce through a store, if it differs from `format`.
  std::optional<WireFormat> result = {};
  [[nodiscard]] std::int64_t bytes() const { return format.bytes(elements); }
  [[nodiscard]] std::int64_t result_bytes() const { return result.value_or(format).bytes(elements); }
};

enum class Pattern {
  all_reduce,            // every node has S and gets the sum
  reduce_scatter,        // every node has S and gets chunk c of the sum, S/n
  all_gather,            // every node has chunk c of S and gets S
  all_to_all,            // every node has S and sends chunk c of it to nodes[c]
  all_to_all_broadcast,  // every node has an S of its own and gets all of them
  reduce,                // every node sends S to nodes[0]
  broadcast,             // nodes[0] sends S to every node
  point_to_point,        // nodes[0] sends S to nodes[1]
};

/// A group of nodes that execute a pattern together, and their payloads.
struct Exchange {
  std::vector<NodeId> nodes;
  std::vector<Payload> payloads;
  [[nodiscard]] std::int64_t bytes() const;  // sum over the payloads, before they are split
};

/// Exchanges that run concurrently with the same pattern.
struct Transfer {
  Pattern pattern = Pattern::all_reduce;
  Collective collective = Collective::ring;  // all_reduce, reduce_scatter, all_gather, all_to_all_broadcast;
                                             // recursive: the first three, among 2ᵏ nodes; store: see below;
                                             // chain: reduce and broadcast
  std::vector<Exchange> exchanges;
};

/// Whether the transfer passes through a store, which is then nodes[0] of each exchange, and has no payload
/// of its own: an all-reduce, an all-to-all broadcast, or a broadcast from nodes[1] to the nodes after it.
inline bool through_store(const Transfer& transfer) {
  return transfer.collective == Collective::store &&
         (transfer.pattern == Pattern::all_reduce || transfer.pattern == Pattern::all_to_all_broadcast ||
          transfer.pattern == Pattern::broadcast);
}

enum class Work {
  gradients,
  optimizer,
  whole_step,
  outer_step,
  forward,
  backward
};  // gradients: forward and backward pass
struct Compute {
  Work work = Work::whole_step;
  std::vector<NodeId> nodes;
  std::int64_t repeat = 1;  // K local steps without communication are one operation
  double share = 1;         // share of the work, for a pipeline stage that does a part of a step
  /// Parameters that an outer step updates. True: all parameters of the node; a parameter that no other node
  /// averaged with it counts as its own average. False: only parameters whose averages have arrived.
  bool whole_model = true;
};

/// An operation of the same node in an earlier round: the one `rounds_back` rounds before.
struct EarlierOp {
  OpId op = 0;
  std::int64_t rounds_back = 1;
  friend bool operator==(const EarlierOp&, const EarlierOp&) = default;
};

struct Op {
  std::string name;  // name in timelines
  std::variant<Compute, Transfer> what;
  std::vector<OpId> after;  // operations of the same round that must end first
  /// Operations of earlier rounds that must end first on the nodes of this operation. References to rounds
  /// before the first one are ignored.
  std::vector<EarlierOp> after_earlier = {};
  bool detached = false;  // the node's next round starts without waiting for it
  /// Only for point_to_point with one exchange: earlier transfers of the same round between the same two
  /// nodes, whose bytes the receiver takes first. The sender does not wait until they have arrived, as on a
  /// connection whose sends do not wait for acknowledgements.
  std::vector<OpId> receive_after = {};
};

struct RoundPlan {
  std::vector<Op> ops;
};

/// Rounds that take equally long, either exactly (`identical`) or in distribution.
struct RoundClass {
  std::int64_t count = 0;
  std::int64_t steps = 0;  // optimiser steps of each round
  bool identical = true;
  std::function<std::int64_t(std::int64_t)> round_at;  // index of the i-th round of the class, 0 ≤ i < count
  /// True if operations of a round extend into the next one. The class then has all rounds of the run. Its
  /// last round is always executed, because no later round hides its transfers and it may have fewer steps.
  bool overlapping = false;
  /// Largest number of rounds by which operations wait for earlier rounds.
  std::int64_t reach = 1;
  /// Only for a plan that was read from a file: the number of rounds that the file describes, if the other
  /// rounds cannot be derived from them.
  std::optional<std::int64_t> known = {};
  /// No worker ever waits for another one: the rates at which they train add up. No last round is different.
  bool own_pace = false;
};

/// The rate of the path between two sites, payload only.
struct PathRate {
  int from = 0, to = 0;
  double bytes_per_s = 0;
};

struct Plan {
  std::vector<Node> nodes;
  std::vector<TensorGroup> groups;
  std::int64_t rounds = 0;
  std::int64_t steps = 0;  // optimiser steps of all rounds together
  std::vector<RoundClass> classes;
  std::function<RoundPlan(std::int64_t)> round;  // pure function; 0 ≤ index < rounds
  /// Expert placement while round `index` trains, 0 ≤ index ≤ rounds. An empty function means that every node
  /// holds all experts.
  std::function<Placement(std::int64_t)> placement = {};
  std::vector<std::string> notes;  // notes on how the method interprets the scenario, in words
  /// Paths whose flows have this rate whatever others send. It stands for what other flows leave of the links
  /// on average, where the times at which flows meet are arbitrary (costmodel/compute/own_pace.hpp).
  std::vector<PathRate> averaged_paths = {};
};

/// The effective platform on which the plan is executed: with its averaged_paths, if it has any.
platforms::Platform platform_of(const Plan& plan, platforms::Platform effective);

/// Whether the classes, one after the other, list the rounds in their order. This holds if there is one
/// class, or a second one that is the last round alone.
inline bool in_turn(const Plan& plan) {
  const std::vector<RoundClass>& classes = plan.classes;
  return classes.size() == 1 ||
         (classes.size() == 2 && classes[1].count == 1 && classes[1].round_at(0) == plan.rounds - 1);
}

/// Optimiser steps of a round of a plan whose rounds have equally many, but for a shorter last one.
std::int64_t steps_of_round(const Plan& plan, std::int64_t index);

/// Elements of chunk `chunk` of `chunks`: ⌈elements/chunks⌉ for the first (elements mod chunks) chunks,
/// ⌊elements/chunks⌋ for the others.
std::int64_t chunk_elements(std::int64_t elements, int chunks, int chunk);
/// Bytes of one chunk of an exchange; each payload is split separately.
std::int64_t chunk_bytes(const Exchange& exchange, int chunks, int chunk);

// Collectives through a store: each node uploads its payload once. Either the store, or an aggregator beside
// it, combines the payloads of all who contribute, and each of them downloads the result; or each downloads
// what the others have uploaded. For n contributors with S bytes each, and results of S′ bytes, a node
//   sends S, and receives S′ or (n−1)·S.
// An *object* is what the same nodes exchange in one operation; it is put once by each contributor.

/// The average of each exchange among its nodes, through the store at this node.
Transfer average_through_store(const platforms::Store& store, NodeId node, std::vector<Exchange> exchanges);

/// Point-to-point transfers of these exchanges, through the store at this node.
Transfer relayed_by_store(NodeId node, std::vector<Exchange> exchanges);

/// Uploads and downloads of objects in a round. Zero if the plan has no store.
double store_requests(const std::vector<Node>& nodes, const RoundPlan& round);

}  // namespace fomoe::costmodel
