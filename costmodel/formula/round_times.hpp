// The closed form itself. It converts a plan's summary to seconds, for one configuration or a block of many.
#pragma once
#include "costmodel/compute/step_seconds.hpp"
#include "costmodel/formula/links.hpp"
#include "costmodel/math/lanes.hpp"
#include "costmodel/plan/plan_summary.hpp"

namespace fomoe::costmodel {

/// Computation time of a site in the mean round, in seconds.
template <class V>
V round_compute_s(const Summary<V>& summary, const StepSeconds<V>& step, const V& outer_step_s) {
  return summary.steps / summary.rounds *
             (summary.compute_factor * step.gradients_s + summary.optimizer_factor * step.optimizer_s) +
         summary.outer_steps_per_round * outer_step_s;
}

/// Times of the mean round, in seconds.
template <class V>
struct RoundTimes {
  V slowest_compute_s;
  V waiting_s;  // waiting for other sites inside the steps
  V communication_s = constant<V>(0);
  V exposed_s = constant<V>(0);  // communication that compute does not hide
  V duration_s;
};

/// Computation that hides a stage: what remains of the step in which it begins, and what follows.
template <class V>
V before_end_s(const Stage<V>& stage, const StepSeconds<V>& step) {
  return stage.hidden_backwards * step.backward_s() + stage.hidden_optimizers * step.optimizer_s;
}
template <class V>
V after_end_s(const Stage<V>& stage, const StepSeconds<V>& step) {
  return stage.hidden_steps * step.step_s() + stage.hidden_forwards * step.forward_s;
}

/// Exposed time of all repetitions of a stage in a round, if the mean repetition is late by `late_s`. With n
/// repetitions of which each is less late than the one before by a, and the first one is late by x, the sum
/// of max(0, x − i·a) has m = min(n, ⌈x/a⌉) terms: m·x − a·m(m−1)/2.
template <class V>
V exposed_s(const Stage<V>& stage, const V& late_s, const StepSeconds<V>& step) {
  const V none = constant<V>(0), n = stage.times_per_round;
  if (!stage.hidden_unequally) return n * max_of(late_s, none);
  const V apart_s = stage.layers_between * (stage.share_of_pass * step.gradients_s + step.optimizer_s);
  const V first_s = max_of(V(late_s + (n - 1.0) / 2.0 * apart_s), none);
  const V terms = min_of(n, ceil_of(V(first_s / apart_s)));
  return terms * first_s - apart_s * terms * (terms - 1.0) / 2.0;
}

/// Computes the times of the mean round. `step` has the computation times of the slowest site. The wall clock
/// T of the run follows from the same terms:
///   T = rounds · (compute + waiting + Σ_stages n · max(0, t_stage − hidden))
/// t_stage is the duration of a stage, n is the number of times that the stage occurs in a round, and
/// `hidden` is the compute time that can hide the stage. A transfer that later steps hide is exposed once, at
/// the end of the run (Stage::shown_at_end).
template <class V>
RoundTimes<V> round_times(const Summary<V>& summary, const LinkSets<V>& links, const StepSeconds<V>& step,
                          const V& outer_step_s) {
  RoundTimes<V> times;
  times.slowest_compute_s = round_compute_s(summary, step, outer_step_s);
  times.waiting_s = summary.steps / summary.rounds * summary.idle_factor * step.gradients_s;
  const V none = constant<V>(0);
  for (int i = 0; i < summary.stage_count; ++i) {
    const Stage<V>& stage = summary.stages[static_cast<std::size_t>(i)];
    const V duration_s = stage_s(stage, links);
    V late_at_end_s = duration_s - before_end_s(stage, step);
    V late_s = late_at_end_s - after_end_s(stage, step) - stage.hidden_hops * links.all.latency_s;
    times.communication_s += stage.times_per_round * duration_s;
    for (; i + 1 < summary.stage_count; ++i) {  // the parts of this stage
      const Stage<V>& part = summary.stages[static_cast<std::size_t>(i + 1)];
      if (!part.part_of_previous) break;
      const V part_s = stage_s(part, links) - before_end_s(part, step);
      late_at_end_s = max_of(late_at_end_s, part_s);
      late_s = max_of(late_s, V(part_s - after_end_s(part, step)));
    }
    times.exposed_s += exposed_s(stage, late_s, step);
    if (stage.shown_at_end)
      times.exposed_s += (max_of(late_at_end_s, none) - max_of(late_s, none)) / summary.rounds;
  }
  times.duration_s = times.slowest_compute_s + times.waiting_s + times.exposed_s;
  return times;
}

}  // namespace fomoe::costmodel
