// Checkpoints of a run: one safetensors file for each node and round, DIR/round-00000012/node-3.safetensors.
// A round can be resumed where the files of all its nodes are there; each process looks after its own nodes.
// The same files come from several processes and from one in turn.
#pragma once
#include <cstdint>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "trainer/io/safetensors.hpp"
#include "trainer/run/executor.hpp"

namespace fomoe::trainer {

class Checkpoints {
 public:
  /// `digest`: of what is trained; files of another digest are refused.
  Checkpoints(std::string directory, std::string digest);
  ~Checkpoints();
  Checkpoints(const Checkpoints&) = delete;
  Checkpoints& operator=(const Checkpoints&) = delete;

  /// Copies the state of the hosted nodes as it is after `rounds` rounds, and writes it while training goes
  /// on. Waits for the one before. Older ones but the last two are removed.
  void save(Executor& executor, std::int64_t rounds);
  /// Until the last one is on disk. Throws what writing it threw.
  void wait();

  /// Rounds for which there are files of all of these nodes, ascending.
  /// Of no nodes: all rounds with a folder.
  [[nodiscard]] std::vector<std::int64_t> complete(const std::vector<costmodel::NodeId>& nodes) const;
  /// Brings the executor's hosted nodes to their state after `rounds` rounds. Throws FileError
  /// where a file is truncated, foreign or of another run.
  void load(Executor& executor, std::int64_t rounds) const;

 private:
  [[nodiscard]] std::string folder(std::int64_t rounds) const;
  [[nodiscard]] std::string file(std::int64_t rounds, costmodel::NodeId node) const;
  void remove_older(const std::vector<costmodel::NodeId>& nodes) const;

  std::string directory_, digest_;
  std::thread writer_;
  std::exception_ptr failure_;
};

}  // namespace fomoe::trainer
