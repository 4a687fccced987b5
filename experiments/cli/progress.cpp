#include "experiments/cli/progress.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <memory>

#include "experiments/text/human.hpp"

namespace fomoe::commands {

namespace {
constexpr double kSilent_s = 2.0, kBetween_s = 0.2;
}

StatusLine::StatusLine() : start_(Clock::now()), last_(start_), terminal_(isatty(STDERR_FILENO) == 1) {}

double StatusLine::elapsed_s() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }

bool StatusLine::due() const {
  return terminal_ && elapsed_s() >= kSilent_s &&
         std::chrono::duration<double>(Clock::now() - last_).count() >= kBetween_s;
}

void StatusLine::show(const std::string& text) {
  last_ = Clock::now();
  shown_ = true;
  fmt::print(stderr, "\r\033[K{}", text);
  std::fflush(stderr);
}

void StatusLine::clear() {
  if (shown_) std::fputs("\r\033[K", stderr);
  shown_ = false;
}

void Progress::at(std::uint64_t done) {
  if (done == 0 || !line_.due()) return;
  const double share = static_cast<double>(done) / static_cast<double>(total_);
  line_.show(fmt::format("{} of {}, {} left", done, total_, human_time(line_.elapsed_s() * (1 / share - 1))));
}

std::function<void(const sim::SimulationProgress&)> show_simulation() {
  return [line = std::make_shared<StatusLine>()](const sim::SimulationProgress& progress) {
    if (progress.ended) return line->clear();
    if (!line->due() || progress.rounds == 0) return;  // 0: the first round has not begun
    line->show(fmt::format("simulating round {} of {}, at {}",
                           std::min(progress.rounds_finished + 1, progress.rounds), progress.rounds,
                           human_time(progress.simulated_s)));
  };
}

}  // namespace fomoe::commands
