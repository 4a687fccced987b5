// The time that a process spends between rounds: validation, checkpoints and logs.
#pragma once
#include <cstdint>

#include "trainer/execution/executor.hpp"

namespace fomoe::trainer {

class UpkeepClock {
 public:
  /// The executor must outlive it.
  explicit UpkeepClock(Executor& executor) : executor_(executor) {}

  void round_ended() { ended_s_ = executor_.now_s(); }
  /// The next round begins. What took longer than a line in a log is recorded among the operations of the
  /// hosted nodes.
  void begins(std::int64_t round) {
    constexpr double kLeast_s = 1e-3;
    const double seconds = executor_.now_s() - ended_s_;
    seconds_ += seconds;
    if (seconds >= kLeast_s) executor_.note_upkeep(round, ended_s_);
  }
  /// Seconds between all rounds that have begun.
  [[nodiscard]] double seconds() const { return seconds_; }
  /// These, and those since the last round ended.
  [[nodiscard]] double until_now_s() const { return seconds_ + executor_.now_s() - ended_s_; }

 private:
  Executor& executor_;
  double ended_s_ = 0, seconds_ = 0;
};

}  // namespace fomoe::trainer
