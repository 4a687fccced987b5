// Executes rounds of a plan on the simulated network. A node starts an operation when the node's own parts of
// the operation's predecessors have ended. A node starts its next round when all its operations of the
// current round have ended, except detached ones.
//
// With rules of attendance (costmodel/plan/attendance.hpp), a round may go on without nodes that are slow or
// whose site has stopped. Its transfers then begin together, once it is known who takes part.
#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include "costmodel/timeline/timeline.hpp"
#include "sim/executor/simulate.hpp"
#include "sim/executor/simulated_transfer.hpp"
#include "sim/transport/transport.hpp"

namespace fomoe::sim {

class PlanSimulator {
 public:
  PlanSimulator(const costmodel::Plan& plan, const Sequence& sequence, Transport& transport,
                const ComputeSeconds& seconds, const Options& options);
  ~PlanSimulator();

  /// Executes all rounds. Throws std::runtime_error if nodes wait for each other for ever, or if no node is
  /// left from which another one could fetch the training state.
  costmodel::Timeline run();
  /// The present state, to be called during run().
  [[nodiscard]] SimulationProgress progress() const {
    return {fluid_.now(), rounds_finished_, sequence_.size()};
  }

 private:
  struct Fetch;
  struct Round;  // state of all nodes at one position of the sequence of rounds
  /// The computation that a node has begun last.
  struct Busy {
    std::size_t position = 0;
    costmodel::OpId op = 0;
    double start_s = 0, end_s = 0;
  };
  enum class Presence : char {
    member,    // takes part in the rounds
    late,      // still computes for a round that has gone on without it
    lost,      // its site has stopped
    fetching,  // fetches the training state
    ready,     // has the state, and takes part from the next round on
  };

  Round& round_at(std::size_t position);
  void start_round(costmodel::NodeId node, std::size_t position);
  [[nodiscard]] bool takes_part(costmodel::NodeId node, const Round& round, costmodel::OpId op) const;
  void wait_for_earlier(costmodel::NodeId node, Round& round, costmodel::OpId op);
  void tell_later(costmodel::NodeId node, const Round& round, costmodel::OpId op);
  std::unique_ptr<SimulatedTransfer> play(const costmodel::Transfer& transfer, Round& round,
                                          costmodel::OpId op);
  /// The place of a transfer in the queue that Op::receive_after describes.
  Queue queue_of(Round& round, costmodel::OpId op);
  void leave_if_first(Round& round, costmodel::OpId op);
  void note_left(Round& round, costmodel::OpId op);
  void start_op(costmodel::NodeId node, Round& round, costmodel::OpId op);
  void run_op(costmodel::NodeId node, Round& round, costmodel::OpId op);
  void finish_op(costmodel::NodeId node, Round& round, costmodel::OpId op);
  void end_round(costmodel::NodeId node, std::size_t position);
  void finish_round(Round& round);

  // attendance.cpp
  void schedule_outages();
  void gather_members(Round& round);
  /// Counts the round as one in which the node took no part; with −1, no longer.
  void miss(std::size_t node, std::size_t position, std::int64_t count = 1);
  void arrive(costmodel::NodeId node, Round& round, costmodel::OpId op);
  void consider(Round& round);
  void count_down(Round& round, double timeout_s, bool lost_only);
  void begin_transfers(Round& round);
  void leave_out(costmodel::NodeId node, Round& round);
  void lose(costmodel::NodeId node);
  void interrupt(Round& round);
  void go_back();
  void come_back(costmodel::NodeId node);
  void fetched(costmodel::NodeId node);
  void begin_again(costmodel::NodeId node, Round& round);
  void cut_short(costmodel::NodeId node);
  void bury(std::size_t position);
  [[nodiscard]] bool waits_for_lost_sites() const;
  [[nodiscard]] bool all_go_back() const;  // to the last checkpoint, when a site is lost

  const costmodel::Plan& plan_;
  const std::vector<std::int64_t>& sequence_;
  const std::size_t held_rounds_;
  std::size_t nodes_past_held_rounds_ = 0;
  Transport& transport_;
  Fluid& fluid_;
  const ComputeSeconds& seconds_;
  const Options& options_;
  const costmodel::AttendanceRules& rules_;
  std::vector<std::unique_ptr<Round>> live_;  // [position]; released when every node has finished the round
  std::size_t rounds_finished_ = 0;
  std::vector<char> finished_;             // [position]: every member has finished the round
  std::int64_t reach_ = 0;                 // largest number of rounds back that an operation so far waits for
  std::vector<costmodel::NodeId> stores_;  // nodes of the kind store
  std::vector<Presence> presence_;         // [node]
  std::vector<std::size_t> at_;            // [node]: position of the round that it started last
  std::vector<Busy> busy_;                 // [node]
  std::vector<std::uint32_t> epoch_;       // [node]: what the node began in an earlier epoch is void
  int attempts_ = 0;                       // gatherings that have begun
  std::vector<std::unique_ptr<Round>> buried_;                   // rounds that a failure ended
  std::vector<std::unique_ptr<SimulatedTransfer>> interrupted_;  // transfers that a failure ended
  std::vector<std::unique_ptr<Fetch>> fetches_;                  // of nodes that come back
  costmodel::Timeline timeline_;
};

}  // namespace fomoe::sim
