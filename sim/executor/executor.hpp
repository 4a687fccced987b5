// Executes rounds of a plan on the simulated network. A node starts an operation when the node's own parts of
// the operation's predecessors have ended. A node starts its next round when all its operations of the
// current round have ended, except detached ones.
#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include "costmodel/timeline/timeline.hpp"
#include "sim/executor/simulate.hpp"
#include "sim/executor/transfer_run.hpp"
#include "sim/transport/transport.hpp"

namespace fomoe::sim {

class Executor {
 public:
  Executor(const costmodel::Plan& plan, const Sequence& sequence, Transport& transport,
           const ComputeSeconds& seconds, const Options& options);
  ~Executor();

  /// Executes all rounds. Throws std::runtime_error if nodes wait for each other for ever.
  costmodel::Timeline run();

 private:
  struct Round;  // state of all nodes at one position of the sequence of rounds

  Round& round_at(std::size_t position);
  void start_round(costmodel::NodeId node, std::size_t position);
  [[nodiscard]] bool takes_part(costmodel::NodeId node, const Round& round, costmodel::OpId op) const;
  void wait_for_earlier(costmodel::NodeId node, Round& round, costmodel::OpId op);
  void tell_later(costmodel::NodeId node, const Round& round, costmodel::OpId op);
  std::unique_ptr<TransferRun> play(const costmodel::Transfer& transfer, Round& round, costmodel::OpId op);
  void start_op(costmodel::NodeId node, Round& round, costmodel::OpId op);
  void run_op(costmodel::NodeId node, Round& round, costmodel::OpId op);
  void finish_op(costmodel::NodeId node, Round& round, costmodel::OpId op);

  const costmodel::Plan& plan_;
  const std::vector<std::int64_t>& sequence_;
  const std::size_t held_rounds_;
  std::size_t nodes_past_held_rounds_ = 0;
  Transport& transport_;
  Fluid& fluid_;
  const ComputeSeconds& seconds_;
  const Options& options_;
  std::vector<std::unique_ptr<Round>> live_;  // [position]; released when every node has finished the round
  std::size_t rounds_finished_ = 0;
  std::int64_t reach_ = 0;  // largest number of rounds back that an operation so far waits for
  costmodel::Timeline timeline_;
};

}  // namespace fomoe::sim
