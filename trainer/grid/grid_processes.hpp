// The processes that make the runs of a grid.
#pragma once
#include <sys/types.h>

#include <map>
#include <string>
#include <vector>

#include "platforms/support/descriptor.hpp"
#include "trainer/grid/grid_file.hpp"

namespace fomoe::trainer {

/// The files of a grid's runs: FOLDER/runs/ID.json is the report of a finished run, ID.log the messages of
/// its process, ID.checkpoints the state of an unfinished run, and ID.lock is locked while a process makes
/// the run.
class GridFolder {
 public:
  /// Creates the folder. Throws std::runtime_error if that is not possible.
  explicit GridFolder(std::string path);
  [[nodiscard]] std::string file(const std::string& name) const { return path_ + '/' + name; }
  [[nodiscard]] std::string of_run(const GridRun& run, const char* ending) const {
    return path_ + "/runs/" + run.id + ending;
  }
  /// Removes the state of a run that no longer needs it.
  void remove_checkpoints(const GridRun& run) const;

 private:
  std::string path_;
};

/// A lock among all processes that use the folder, for as long as the object lives.
class GridLock {
 public:
  explicit GridLock(const GridFolder& folder);

 private:
  Descriptor file_;
};

/// How a run's process ended.
struct EndedRun {
  std::size_t run = 0;  // index in Grid::runs
  int status = 0;       // 128 + the signal, if a signal ended it
};

/// Runs `fomoe-train run --in-turn` for runs of a grid, each in a process of its own.
class GridProcesses {
 public:
  /// Throws InputError or UsageError if the trainer cannot execute one of the runs.
  GridProcesses(const Grid& grid, GridFolder folder, int threads);
  /// Ends all processes.
  ~GridProcesses();
  GridProcesses(const GridProcesses&) = delete;
  GridProcesses& operator=(const GridProcesses&) = delete;

  /// Starts the run, or returns false if another process makes it at the moment or has made it.
  bool start(std::size_t run);
  [[nodiscard]] std::size_t under_way() const { return running_.size(); }
  /// Waits until one of the processes ends, or until a signal arrives; then `run` is that of no run.
  EndedRun wait();

 private:
  const Grid& grid_;
  GridFolder folder_;
  int threads_;
  std::map<pid_t, std::size_t> running_;
  std::map<std::size_t, Descriptor> locks_;
};

}  // namespace fomoe::trainer
