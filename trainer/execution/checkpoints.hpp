// Checkpoints of a run: one safetensors file for each node and round, DIR/round-00000012/node-3.safetensors.
// A run can resume from a round if the files of all its nodes exist. Each process writes the files of its own
// nodes. The files do not depend on whether one process or several train the sites. Each file says in its
// metadata which experts it holds and how many nodes the run has, so that a whole model can be put together
// without the scenario (trainer/whole/checkpointed_model.hpp).
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "trainer/comm/digest.hpp"
#include "trainer/execution/checkpoint_header.hpp"
#include "trainer/execution/executor.hpp"
#include "trainer/io/safetensors.hpp"

namespace fomoe::trainer {

/// The folder of a round in a directory of checkpoints.
std::string checkpoint_folder(const std::string& directory, std::int64_t rounds);
/// Rounds that have a folder, ascending.
std::vector<std::int64_t> checkpointed_rounds(const std::string& directory);

/// What a node has after a number of rounds: optimiser steps, and its experts by layer (sorted). A server has
/// no number of steps: it makes none, and what files of earlier versions say of it is no count.
struct ExpectedState {
  std::function<std::optional<std::int64_t>(std::int64_t rounds, costmodel::NodeId node)> steps;
  std::function<std::vector<std::vector<int>>(std::int64_t rounds, costmodel::NodeId node)> local_experts;
  std::int64_t last_steps;  // of the whole run
};

class Checkpoints {
 public:
  /// `digest` is what determines the weights (agreement.hpp); files of other weights are refused. `absent`
  /// are the nodes without which the run goes on; the files say so.
  Checkpoints(std::string directory, Digest digest, std::vector<costmodel::NodeId> absent = {});
  ~Checkpoints();
  Checkpoints(const Checkpoints&) = delete;
  Checkpoints& operator=(const Checkpoints&) = delete;

  /// Copies the state of the hosted nodes after `rounds` rounds and writes the copy in a thread while
  /// training continues. If the previous checkpoint is still being written, save() waits for it. Keeps the
  /// last three checkpoints and removes older ones. Throws Diverged if a value is not finite; nothing is
  /// written or removed then.
  void save(Executor& executor, std::int64_t rounds);
  /// Waits until the last checkpoint is on disk. Throws what writing it threw.
  void wait();

  /// Rounds that have files of all `nodes`, ascending. If `nodes` is empty: all rounds that have a folder.
  [[nodiscard]] std::vector<std::int64_t> complete(const std::vector<costmodel::NodeId>& nodes) const;
  /// Those of them that this run can continue from. A file that is truncated or in another format, or that
  /// was written after other steps or with other experts than those of `expected`, is left out, and `reasons`
  /// gets a line that says so. The last round of a run with fewer tokens may be shorter, and moves no
  /// experts. Throws FileError, naming the difference, if a file belongs to a run with other weights.
  [[nodiscard]] std::vector<std::int64_t> usable(const std::vector<costmodel::NodeId>& nodes,
                                                 const ExpectedState& expected,
                                                 std::vector<std::string>& reasons) const;
  /// Sets the executor's hosted nodes to their state after `rounds` rounds. Throws FileError if a file is
  /// truncated, has another format or belongs to another run.
  void load(Executor& executor, std::int64_t rounds) const;
  [[nodiscard]] std::string file(std::int64_t rounds, costmodel::NodeId node) const;
  [[nodiscard]] const std::string& directory() const { return directory_; }
  /// The nodes without which the run trained before this file was written. Throws UnusableFile.
  [[nodiscard]] std::vector<costmodel::NodeId> absent_in(std::int64_t rounds, costmodel::NodeId node) const;

 private:
  [[nodiscard]] std::string folder(std::int64_t rounds) const {
    return checkpoint_folder(directory_, rounds);
  }
  /// Throws FileError if the newest checkpoint is another run's, which may have fewer nodes than this one.
  void refuse_other_run() const;
  /// Throws FileError if a file with this metadata belongs to another run, node or round, and UnusableFile if
  /// the metadata is wrong.
  [[nodiscard]] CheckpointHeader header(const Metadata& metadata, std::int64_t rounds,
                                        costmodel::NodeId node) const;
  void remove_older(const std::vector<costmodel::NodeId>& nodes) const;

  std::string directory_;
  Digest digest_;
  std::vector<costmodel::NodeId> absent_;
  std::thread writer_;
  std::exception_ptr failure_;
};

}  // namespace fomoe::trainer
