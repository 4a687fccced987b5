// The closed form itself. It converts a plan's summary to seconds.
#pragma once
#include "costmodel/compute/step_seconds.hpp"
#include "costmodel/formula/links.hpp"
#include "costmodel/plan/plan_summary.hpp"

namespace fomoe::costmodel {

/// Computation time of a site in the mean round, in seconds.
inline double round_compute_s(const PlanSummary& summary, const StepSeconds& step, double outer_step_s) {
  return summary.steps / summary.rounds *
             (summary.compute_factor * step.gradients_s + summary.optimizer_factor * step.optimizer_s) +
         summary.outer_steps_per_round * outer_step_s;
}

/// Times of the mean round, in seconds.
struct RoundTimes {
  double slowest_compute_s;
  double waiting_s;  // waiting for other sites inside the steps
  double communication_s = 0;
  double exposed_s = 0;  // communication that compute does not hide
  double duration_s;
};

/// Computation that hides a stage: what remains of the step in which it begins, and what follows.
inline double before_end_s(const Stage& stage, const StepSeconds& step) {
  return stage.hidden_backwards * step.backward_s() + stage.hidden_optimizers * step.optimizer_s;
}
inline double after_end_s(const Stage& stage, const StepSeconds& step) {
  return stage.hidden_steps * step.step_s() + stage.hidden_forwards * step.forward_s;
}

/// Exposed time of all repetitions of a stage in a round, if the mean repetition is late by `late_s`. With n
/// repetitions of which each is less late than the one before by a, and the first one is late by x, the sum
/// of max(0, x − i·a) has m = min(n, ⌈x/a⌉) terms: m·x − a·m(m−1)/2.
inline double exposed_s(const Stage& stage, double late_s, const StepSeconds& step) {
  const double none = 0.0, n = stage.times_per_round;
  if (!stage.hidden_unequally) return n * std::max(late_s, none);
  const double apart_s = stage.layers_between * (stage.share_of_pass * step.gradients_s + step.optimizer_s);
  const double first_s = std::max(late_s + (n - 1.0) / 2.0 * apart_s, none);
  const double terms = std::min(n, std::ceil(first_s / apart_s));
  return terms * first_s - apart_s * terms * (terms - 1.0) / 2.0;
}

/// Computes the times of the mean round. `step` has the computation times of the slowest site. The wall clock
/// T of the run follows from the same terms:
///   T = rounds · (compute + waiting + Σ_stages n · max(0, t_stage − hidden))
/// t_stage is the duration of a stage, n is the number of times that the stage occurs in a round, and
/// `hidden` is the compute time that can hide the stage. A transfer that later steps hide is exposed once, at
/// the end of the run (Stage::shown_at_end).
inline RoundTimes round_times(const PlanSummary& summary, const LinkSets& links, const StepSeconds& step,
                              double outer_step_s) {
  RoundTimes times;
  times.slowest_compute_s = round_compute_s(summary, step, outer_step_s);
  times.waiting_s = summary.steps / summary.rounds * summary.idle_factor * step.gradients_s;
  const double none = 0;
  for (std::size_t i = 0; i < summary.stages.size(); ++i) {
    const Stage& stage = summary.stages[i];
    const double duration_s = stage_s(stage, links);
    double late_at_end_s = duration_s - before_end_s(stage, step);
    double late_s = late_at_end_s - after_end_s(stage, step) - stage.hidden_hops * links.all.latency_s;
    times.communication_s += stage.times_per_round * duration_s;
    for (; i + 1 < summary.stages.size(); ++i) {  // the parts of this stage
      const Stage& part = summary.stages[i + 1];
      if (!part.part_of_previous) break;
      const double part_s = stage_s(part, links) - before_end_s(part, step);
      late_at_end_s = std::max(late_at_end_s, part_s);
      late_s = std::max(late_s, part_s - after_end_s(part, step));
    }
    times.exposed_s += exposed_s(stage, late_s, step);
    if (stage.shown_at_end)
      times.exposed_s += (std::max(late_at_end_s, none) - std::max(late_s, none)) / summary.rounds;
  }
  times.duration_s = times.slowest_compute_s + times.waiting_s + times.exposed_s;
  return times;
}

}  // namespace fomoe::costmodel
