// Plays rounds of a plan on an engine: an operation of a node starts when that node's parts of the operations
// before it have ended, and a node's next round when its own round has, save detached operations.
#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include "costmodel/timeline/timeline.hpp"
#include "sim/engine/engine.hpp"
#include "sim/executor/simulate.hpp"
#include "sim/executor/transfer_run.hpp"

namespace fomoe::sim {

class Executor {
 public:
  Executor(const costmodel::Plan& plan, const std::vector<std::int64_t>& rounds, Engine& engine,
           const ComputeSeconds& seconds, const Options& options);
  ~Executor();

  /// Everything, to the end. Throws std::runtime_error where nodes wait for each other for ever.
  costmodel::Timeline run();

 private:
  struct Round;  // what all nodes share about one position of the sequence

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
  Engine& engine_;
  const ComputeSeconds& seconds_;
  const Options& options_;
  std::vector<std::unique_ptr<Round>> live_;  // by position; released when every node is through
  std::size_t rounds_finished_ = 0;
  std::int64_t reach_ = 0;  // rounds back that operations wait for, the most so far
  costmodel::Timeline timeline_;
};

}  // namespace fomoe::sim
