#include "experiments/cli/progress.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>

#include "experiments/text/human.hpp"

namespace fomoe::commands {

namespace {
constexpr double kSilent_s = 2.0, kBetween_s = 0.2;
}

Progress::Progress(std::uint64_t total)
    : total_(total), start_(Clock::now()), last_(start_), terminal_(isatty(STDERR_FILENO) == 1) {}

Progress::~Progress() {
  if (shown_) std::fputs("\r\033[K", stderr);
}

void Progress::at(std::uint64_t done) {
  if (!terminal_ || done == 0) return;
  const Clock::time_point now = Clock::now();
  const double elapsed_s = std::chrono::duration<double>(now - start_).count();
  if (elapsed_s < kSilent_s || std::chrono::duration<double>(now - last_).count() < kBetween_s) return;
  last_ = now;
  shown_ = true;
  const double share = static_cast<double>(done) / static_cast<double>(total_);
  fmt::print(stderr, "\r\033[K{} of {}, {} left", done, total_, human_time(elapsed_s * (1 / share - 1)));
  std::fflush(stderr);
}

}  // namespace fomoe::commands
