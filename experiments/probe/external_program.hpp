// Runs a child process and reads its output while it runs. The child outlives neither its time limit nor this
// process.
#pragma once
#include <sys/types.h>

#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "experiments/probe/line_socket.hpp"

namespace fomoe::probe {

class ExternalProgram {
 public:
  /// Starts a program found on PATH. Throws std::runtime_error if it cannot be started.
  explicit ExternalProgram(const std::vector<std::string>& command);
  /// Kills the process if it still runs.
  ~ExternalProgram();
  ExternalProgram(const ExternalProgram&) = delete;
  ExternalProgram& operator=(const ExternalProgram&) = delete;

  /// Reads until the output contains `text`, the output ends, or the time is over. Returns whether `text` was
  /// found.
  bool wait_for_output(const std::string& text, double until_s);
  /// Returns whether the output ends before the given time. If it does, the process has ended or is about to
  /// end.
  bool wait_for_end(double until_s);
  /// Waits until the process ends, and kills the process when the time is over. Returns the exit status in
  /// the form in which a shell reports it. Returns nothing if this function killed the process.
  std::optional<int> wait(double until_s);
  /// May be called from any thread while this object lives.
  void kill();
  [[nodiscard]] const std::string& output() const { return output_; }  // stdout and stderr

 private:
  bool read_some(double until_s);  // false at the end of the output or when the time is over

  pid_t process_ = -1;
  /// The lock is held while waitpid() collects the exit status, so that kill() never signals a new process
  /// that got the same process id.
  std::mutex ending_;
  bool ended_ = false;
  Descriptor pipe_;
  bool output_ended_ = false;
  std::string output_;
};

/// The path of a program found on PATH; empty if it is not there.
std::string program_on_path(const std::string& name);

}  // namespace fomoe::probe
