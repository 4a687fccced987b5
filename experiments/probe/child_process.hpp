// A program whose output is read while it runs, and which never outlives its limit or us.
#pragma once
#include <sys/types.h>

#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "experiments/probe/line_socket.hpp"

namespace fomoe::probe {

class ChildProcess {
 public:
  /// Found on PATH. Throws std::runtime_error where it cannot be started.
  explicit ChildProcess(const std::vector<std::string>& command);
  /// Killed where it still runs.
  ~ChildProcess();
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  /// Reads until `text` is in the output, the output ends or the time is over; true where `text` came.
  bool wait_for_output(const std::string& text, double until_s);
  /// True where its output has ended by then: it has ended, or is about to.
  bool wait_for_end(double until_s);
  /// Until it ends; kills it then. Its exit status as a shell gives it; empty where it was killed here.
  std::optional<int> wait(double until_s);
  /// From any thread, while this object lives.
  void kill();
  [[nodiscard]] const std::string& output() const { return output_; }  // stdout and stderr

 private:
  bool read_some(double until_s);  // false at the end, or where the time is over

  pid_t process_ = -1;
  std::mutex ending_;  // so that kill() never meets another process of that id
  bool ended_ = false;
  Socket pipe_;
  bool output_ended_ = false;
  std::string output_;
};

/// Where a program is on PATH; empty where it is not.
std::string program_on_path(const std::string& name);

}  // namespace fomoe::probe
