// Checkpoints of a run: one safetensors file for each node and round, DIR/round-00000012/node-3.safetensors.
// A run can resume from a round if the files of all its nodes exist. Each process writes the files of its own
// nodes. The files do not depend on whether one process or several train the sites.
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
  /// `digest` identifies what is trained; files with another digest are refused.
  Checkpoints(std::string directory, std::string digest);
  ~Checkpoints();
  Checkpoints(const Checkpoints&) = delete;
  Checkpoints& operator=(const Checkpoints&) = delete;

  /// Copies the state of the hosted nodes after `rounds` rounds and writes the copy in a thread while
  /// training continues. If the previous checkpoint is still being written, save() waits for it. Keeps the
  /// last three checkpoints and removes older ones.
  void save(Executor& executor, std::int64_t rounds);
  /// Waits until the last checkpoint is on disk. Throws what writing it threw.
  void wait();

  /// Rounds that have files of all `nodes`, ascending. If `nodes` is empty: all rounds that have a folder.
  [[nodiscard]] std::vector<std::int64_t> complete(const std::vector<costmodel::NodeId>& nodes) const;
  /// Sets the executor's hosted nodes to their state after `rounds` rounds. Throws FileError if a file is
  /// truncated, has another format or belongs to another run.
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
