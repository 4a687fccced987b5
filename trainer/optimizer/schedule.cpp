#include "trainer/optimizer/schedule.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace fomoe::trainer {

Schedule schedule_named(const std::string& name) {
  return name == "cosine" ? Schedule::cosine : name == "wsd" ? Schedule::wsd : Schedule::constant;
}

double LearningRate::at(std::int64_t step) const {
  if (step < warmup_steps) return peak * static_cast<double>(step + 1) / static_cast<double>(warmup_steps);
  const auto share_of = [](std::int64_t done, std::int64_t all) {
    return std::clamp(static_cast<double>(done) / static_cast<double>(std::max<std::int64_t>(1, all)), 0.0,
                      1.0);
  };
  switch (schedule) {
    case Schedule::constant:
      return peak;
    case Schedule::cosine: {
      const double x = share_of(step - warmup_steps, steps - warmup_steps);
      return peak * (final_share + (1 - final_share) * (1 + std::cos(std::numbers::pi * x)) / 2);
    }
    case Schedule::wsd:
      return peak * (1 - (1 - final_share) * share_of(step - (steps - decay_steps), decay_steps));
  }
  return peak;
}

}  // namespace fomoe::trainer
