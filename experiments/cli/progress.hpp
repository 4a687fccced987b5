// Shows progress ("37 %, 12 s left") on stderr. It prints only if stderr is a terminal, and not during the
// first 2 s.
#pragma once
#include <chrono>
#include <cstdint>

namespace fomoe::commands {

class Progress {
 public:
  explicit Progress(std::uint64_t total);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  void at(std::uint64_t done);

 private:
  using Clock = std::chrono::steady_clock;
  std::uint64_t total_;
  Clock::time_point start_, last_;
  bool terminal_, shown_ = false;
};

}  // namespace fomoe::commands
