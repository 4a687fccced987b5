// Shows on stderr how far long work has come. It prints only if stderr is a terminal, and not during the
// first 2 s.
#pragma once
#include <chrono>
#include <cstdint>
#include <functional>
#include <string>

#include "sim/executor/simulate.hpp"

namespace fomoe::commands {

/// One line of a terminal, which each text replaces.
class StatusLine {
 public:
  StatusLine();
  ~StatusLine() { clear(); }
  StatusLine(const StatusLine&) = delete;
  StatusLine& operator=(const StatusLine&) = delete;
  /// Whether a text should be shown now: some time has passed since the last one.
  [[nodiscard]] bool due() const;
  void show(const std::string& text);
  void clear();
  [[nodiscard]] double elapsed_s() const;

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point start_, last_;
  bool terminal_, shown_ = false;
};

/// "37 of 100, 12 s left".
class Progress {
 public:
  explicit Progress(std::uint64_t total) : total_(total) {}
  void at(std::uint64_t done);

 private:
  std::uint64_t total_;
  StatusLine line_;
};

/// Shows "simulating round 2 of 3, at 3 min 20 s", where the time is simulated; for
/// sim::RunOptions::on_progress. The line goes when the last copy of the function does.
std::function<void(const sim::SimulationProgress&)> show_simulation();

}  // namespace fomoe::commands
