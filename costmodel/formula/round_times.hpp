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
  for (int i = 0; i < summary.stage_count; ++i) {
    const Stage<V>& stage = summary.stages[static_cast<std::size_t>(i)];
    const V duration_s = stage_s(stage, links);
    times.communication_s += stage.times_per_round * duration_s;
    const V hidden_s = stage.hidden_steps * step.step_s() + stage.hidden_forwards * step.forward_s +
                       stage.hidden_backwards * step.backward_s();
    times.exposed_s += stage.times_per_round * max_of(V(duration_s - hidden_s), constant<V>(0));
    if (stage.shown_at_end) times.exposed_s += min_of(duration_s, hidden_s) / summary.rounds;
  }
  times.duration_s = times.slowest_compute_s + times.waiting_s + times.exposed_s;
  return times;
}

}  // namespace fomoe::costmodel
