#include "trainer/measurement/pacing.hpp"

#include <chrono>
#include <thread>

namespace fomoe::trainer {

void Pacing::sleep(const costmodel::Compute& work, costmodel::NodeId node, std::int64_t round,
                   costmodel::OpId op, const std::function<void(double seconds)>& on_repeat) const {
  const double seconds = seconds_.of(work, node, round, op);
  const auto start = std::chrono::steady_clock::now();
  for (std::int64_t i = 0; i < work.repeat; ++i) {
    // Each repeat ends at a time after the start of the operation, so that late wake-ups do not add up.
    const double until_s = seconds * static_cast<double>(i + 1) / static_cast<double>(work.repeat);
    std::this_thread::sleep_until(start + std::chrono::duration<double>(until_s));
    on_repeat(seconds / static_cast<double>(work.repeat));
  }
}

}  // namespace fomoe::trainer
