// The state of all nodes in one executed round. Only PlanSimulator's own files include this header.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "sim/executor/plan_simulator.hpp"

namespace fomoe::sim {

inline constexpr double kNoPart = -1;

/// How far the nodes have come in a round.
struct RoundProgress {
  // [node][op]: predecessors that have not ended; the round's start counts as one.
  std::vector<std::vector<std::size_t>> waits;
  std::vector<std::vector<char>> ended;      // [node][op]
  std::vector<std::vector<double>> start_s;  // [node][op]; kNoPart if the node takes no part in the operation
  std::vector<char> left;                 // [op]: all bytes of a transfer have left, if others queue behind
  std::vector<std::size_t> attached_ops;  // [node]: unfinished operations that its next round waits for
  std::size_t unfinished = 0;             // (node, operation) pairs of members that have not ended
};

/// A round whose transfers begin together, when it is known who takes part (attendance.cpp).
struct Gathering {
  bool done = true;                   // transfers may begin
  int attempt = 0;                    // timers of earlier attempts are void
  bool counts_down = false;           // the time-out for slow nodes runs
  bool counts_down_for_lost = false;  // the time-out for lost nodes runs
  std::vector<char> expected;         // [node]: takes part in a transfer of the round
  std::vector<char> arrived;          // [node]
  std::vector<std::pair<costmodel::NodeId, costmodel::OpId>> ready;  // transfers that nodes may start
  RoundProgress before;  // the progress when the transfers began; they begin again from it after a failure
};

struct PlanSimulator::Round {
  std::size_t position = 0;
  costmodel::RoundPlan plan;
  std::vector<std::vector<costmodel::OpId>> next;  // [op]: operations of this round that wait for it
  /// [op]; empty for computations, and before gathering
  std::vector<std::unique_ptr<SimulatedTransfer>> transfers;
  std::vector<std::size_t> first_waits;  // [op]: waits at the start, but for Op::receive_after
  /// [op]: the transfers whose bytes a node takes when it has those of this one (Op::receive_after)
  std::vector<std::vector<std::pair<costmodel::NodeId, costmodel::OpId>>> received_next;
  bool has_queues = false;  // whether any operation has a receive_after
  /// [op]: departures that wait until the bytes of the transfers before it have left
  std::vector<std::vector<Fluid::Callback>> wait_to_leave;
  std::size_t first_attached_ops = 0;
  RoundProgress progress;
  std::vector<char> started;  // [node]
  // For each (rounds back, operation) of an earlier round, the operations of this round that wait for it. One
  // that names it twice is listed twice.
  std::map<std::pair<std::int64_t, costmodel::OpId>, std::vector<costmodel::OpId>> after_earlier;
  std::vector<char> members;  // [node]: takes part in the round
  Gathering gathering;

  /// RoundProgress::waits of a node at the start.
  [[nodiscard]] std::vector<std::size_t> waits_at_start(costmodel::NodeId node) const {
    std::vector<std::size_t> waits = first_waits;
    if (!has_queues) return waits;
    for (const auto& of_op : received_next)
      for (const auto& [receiver, behind] : of_op)
        if (receiver == node) ++waits[static_cast<std::size_t>(behind)];
    return waits;
  }
};

/// The message with which a node fetches the training state.
struct PlanSimulator::Fetch : MessageEvents {
  explicit Fetch(Fluid::Callback ended) : done(std::move(ended)) {}
  void moving(FlowRef /*message*/, double /*lead_s*/) override {}
  void all_left(FlowRef /*message*/) override {}
  void sent(FlowRef /*message*/) override {}
  void arrived(FlowRef /*message*/) override { done(); }

  Fluid::Callback done;
  std::unique_ptr<Message> message;
};

}  // namespace fomoe::sim
