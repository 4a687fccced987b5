// The learning rate of a step.
#pragma once
#include <cstdint>
#include <string>

namespace fomoe::trainer {

/// The rate after the warm-up. constant: it stays. cosine: it falls along half a cosine until the end of the
/// run (Loshchilov & Hutter 2017, SGDR, one cycle). wsd: it stays and then falls linearly during the last
/// decay_steps (warmup-stable-decay; Hu et al. 2024, MiniCPM).
enum class Schedule { constant, cosine, wsd };
/// By the value of trainer.schedule.
Schedule schedule_named(const std::string& name);

struct LearningRate {
  double peak = 1e-3;
  std::int64_t warmup_steps = 0;
  Schedule schedule = Schedule::constant;
  std::int64_t steps = 0;        // of the whole run; not used if constant
  std::int64_t decay_steps = 0;  // for wsd
  double final_share = 0.1;      // of the peak, at the end of the run

  /// η(s) for step s = 0, 1, …, with the peak η, w warm-up steps, N steps of the run, D decay steps and the
  /// final share f:
  ///   s < w      η·(s + 1)/w
  ///   constant   η
  ///   cosine     η·(f + (1 − f)·(1 + cos πx)/2),  x = (s − w)/(N − w)
  ///   wsd        η·(1 − (1 − f)·x),                x = max(0, s − (N − D))/D
  [[nodiscard]] double at(std::int64_t step) const;
};

}  // namespace fomoe::trainer
