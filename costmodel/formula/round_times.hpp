// The closed form itself. It converts a plan's summary to seconds.
#pragma once
#include "costmodel/compute/step_seconds.hpp"
#include "costmodel/formula/links/stage_durations.hpp"
#include "costmodel/plan/plan_summary.hpp"

namespace fomoe::costmodel {

/// Seconds of the steps of a site in the mean round.
inline double round_steps_s(const PlanSummary& summary, const StepSeconds& step) {
  return summary.steps / summary.rounds *
         (summary.compute_factor_of(step.equal_part) * step.gradients_s +
          summary.optimizer_factor * step.optimizer_s);
}
/// Computation time of a site in the mean round, in seconds.
inline double round_compute_s(const PlanSummary& summary, const StepSeconds& step, double outer_step_s) {
  return round_steps_s(summary, step) + summary.outer_steps_per_round * outer_step_s;
}

/// Computation of a site in a round: its steps, and one update after the transfers.
struct SiteComputation {
  double steps_s, outer_step_s;
};

/// Computation between the transfers in the mean round, if all sites wait for the slowest one at each
/// transfer: it is the one whose update and next steps take longest together. Before the first transfer there
/// is no update, and after the last one there are no steps.
double between_transfers_s(const PlanSummary& summary, const std::vector<SiteComputation>& sites);

/// Times of the mean round, in seconds.
struct RoundTimes {
  double slowest_compute_s;  // between_transfers_s()
  double waiting_s;          // waiting for other sites inside the steps
  double communication_s = 0;
  double exposed_s = 0;  // communication that compute does not hide
  double duration_s;
  std::vector<StageDuration> stages = {};  // [stage of the summary]
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
double exposed_s(const Stage& stage, double late_s, const StepSeconds& step);

/// Computes the times of the mean round. `step` has the computation times of the slowest site, and
/// `slowest_compute_s` is all computation between the transfers. The wall clock
/// T of the run follows from the same terms:
///   T = rounds · (compute + waiting + Σ_stages n · max(0, t_stage − hidden))
/// t_stage is the duration of a stage, n is the number of times that the stage occurs in a round, and
/// `hidden` is the compute time that can hide the stage. A transfer that later steps hide is exposed once, at
/// the end of the run (Stage::shown_at_end).
RoundTimes round_times(const PlanSummary& summary, const LinkSets& links, const StepSeconds& step,
                       double slowest_compute_s);

}  // namespace fomoe::costmodel
