// The plan: what is computed, and who sends which tensors to whom, in what order.
//
// A round is a small directed graph. An operation spans several nodes, and dependences hold *per node*: node
// n starts its part of an operation when its own parts of the operations in `after` have ended. There is no
// global barrier. Operations of one node that do not depend on each other run at the same time.
// A training method is a pure function from Scenario to Plan; executors know no method's name.
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

enum class NodeKind { worker, server };
struct Node {
  NodeKind kind = NodeKind::worker;
  int site = 0;
  double sequences = 0;  // that it trains on in one optimiser step
};

enum class Content {
  parameter,
  gradient,
  pseudo_gradient,
  moment1,
  moment2,
  outer_moment1,  // of the outer optimiser: Nesterov's momentum, or Adam's and Yogi's first moment
  outer_moment2,
  activation,
  sequences,
  training_state,
  key
};
enum class TensorClass { embedding, attention, norm, router, expert };

/// Parameters that travel together; the trainer finds the tensors again by class, layers and experts.
struct TensorGroup {
  std::vector<TensorClass> classes;
  std::int64_t layer_begin = 0, layer_end = 0;    // [begin, end)
  std::int64_t expert_begin = 0, expert_end = 0;  // [begin, end); of router columns and experts only
  std::int64_t elements = 0;                      // summed over classes, layers and experts
};

/// What the bytes are counted as in reports.
enum class TrafficClass { dense, expert_sync, migration, data, checkpoint, rejoin, activation };

/// The elements of some groups, in the groups' order, as one flat buffer; or chunk c of n of that buffer.
/// Activations belong to no group.
struct Payload {
  Content content = Content::parameter;
  TrafficClass traffic = TrafficClass::dense;
  std::vector<GroupId> groups;
  WireFormat format;
  std::int64_t elements = 0;  // of the chunk
  int chunk = 0, chunks = 1;
  [[nodiscard]] std::int64_t bytes() const { return format.bytes(elements); }
};

enum class Pattern {
  all_reduce,            // everybody has S and gets the sum
  reduce_scatter,        // everybody has S and gets chunk c of the sum, S/n
  all_gather,            // everybody has chunk c of S and gets S
  all_to_all,            // everybody has S and sends chunk c of it to nodes[c]
  all_to_all_broadcast,  // everybody has an S of its own and gets all of them
  reduce,                // everybody sends S to nodes[0]
  broadcast,             // nodes[0] sends S to everybody
  point_to_point,        // nodes[0] sends S to nodes[1]
};

/// One group of nodes among whom a pattern runs.
struct Exchange {
  std::vector<NodeId> nodes;
  std::vector<Payload> payloads;
  [[nodiscard]] std::int64_t bytes() const;  // Σ payload bytes, before any splitting
};

/// All exchanges of a transfer run concurrently.
struct Transfer {
  Pattern pattern = Pattern::all_reduce;
  Collective collective = Collective::ring;  // all_reduce, reduce_scatter, all_gather, all_to_all_broadcast;
                                             // recursive: the first three, among 2ᵏ nodes
  std::vector<Exchange> exchanges;
};

enum class Work {
  gradients,
  optimizer,
  whole_step,
  outer_step,
  forward,
  backward
};  // gradients: both passes
struct Compute {
  Work work = Work::whole_step;
  std::vector<NodeId> nodes;
  std::int64_t repeat = 1;  // K quiet steps are one operation
  double share = 1;         // of the work: a pipeline stage does a part of a step
  /// What an outer step updates. True: all that the node holds; what nobody averaged with it counts as
  /// averaged with itself alone. False: only what averages have arrived of.
  bool whole_model = true;
};

/// An operation of an earlier round of the same node: of `rounds_back` before.
struct EarlierOp {
  OpId op = 0;
  std::int64_t rounds_back = 1;
  friend bool operator==(const EarlierOp&, const EarlierOp&) = default;
};

struct Op {
  std::string name;  // for timelines
  std::variant<Compute, Transfer> what;
  std::vector<OpId> after;  // earlier operations of the same round
  /// Waited for by the nodes that take part in this operation; before the first round there is nothing to
  /// wait for.
  std::vector<EarlierOp> after_earlier = {};
  bool detached = false;  // the node's next round starts without waiting for it
};

struct RoundPlan {
  std::vector<Op> ops;
};

/// Rounds that take equally long, exactly (`identical`) or in distribution.
struct RoundClass {
  std::int64_t count = 0;
  std::int64_t steps = 0;  // optimiser steps in each
  bool identical = true;
  std::function<std::int64_t(std::int64_t)> round_at;  // i-th round of the class, 0 ≤ i < count
  /// Operations of a round run on into the next one: then the class has all rounds of the run, and its last
  /// one, which has nothing after it to hide behind and may have fewer steps, is always executed.
  bool overlapping = false;
  /// How many rounds back operations wait for, the most of all.
  std::int64_t reach = 1;
  /// Of a plan that was read: as many rounds as it describes, where the others cannot be told from them.
  std::optional<std::int64_t> known = {};
};

struct Plan {
  std::vector<Node> nodes;
  std::vector<TensorGroup> groups;
  std::int64_t rounds = 0;
  std::int64_t steps = 0;  // optimiser steps in all rounds
  std::vector<RoundClass> classes;
  std::function<RoundPlan(std::int64_t)> round;  // pure; 0 ≤ index < rounds
  /// Who holds which experts while round `index` trains, 0 ≤ index ≤ rounds. Empty: everybody holds all.
  std::function<Placement(std::int64_t)> placement = {};
  std::vector<std::string> notes;  // what the method made of the scenario, in words
};

/// Whether the rounds of one class after those of the other are the rounds in their order: there is one
/// class, or a second one that is the last round alone.
inline bool in_turn(const Plan& plan) {
  const std::vector<RoundClass>& classes = plan.classes;
  return classes.size() == 1 ||
         (classes.size() == 2 && classes[1].count == 1 && classes[1].round_at(0) == plan.rounds - 1);
}

/// Elements of chunk c of n: ⌈elements/n⌉ for the first (elements mod n) chunks, ⌊elements/n⌋ for the others.
std::int64_t chunk_elements(std::int64_t elements, int chunks, int chunk);
/// Bytes of chunk c of n of an exchange; each payload is split by itself.
std::int64_t chunk_bytes(const Exchange& exchange, int chunks, int chunk);

}  // namespace fomoe::costmodel
