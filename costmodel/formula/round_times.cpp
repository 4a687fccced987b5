#include "costmodel/formula/round_times.hpp"

#include <algorithm>
#include <cmath>

namespace fomoe::costmodel {

double exposed_s(const Stage& stage, double late_s, const StepSeconds& step) {
  const double none = 0.0, n = stage.times_per_round;
  if (!stage.hidden_unequally) return n * std::max(late_s, none);
  const double apart_s =
      stage.layers_between * (stage.layers_of_forward * step.forward_s +
                              stage.layers_of_backward * step.backward_s() + step.optimizer_s);
  const double first_s = std::max(late_s + (n - 1.0) / 2.0 * apart_s, none);
  const double terms = std::min(n, std::ceil(first_s / apart_s));
  return terms * first_s - apart_s * terms * (terms - 1.0) / 2.0;
}

double between_transfers_s(const PlanSummary& summary, const std::vector<SiteComputation>& sites) {
  const double updates = summary.outer_steps_per_round * summary.rounds;
  const bool hidden = std::any_of(summary.stages.begin(), summary.stages.end(),
                                  [](const Stage& stage) { return stage.hidden_steps > 0; });
  double steps_s = 0, update_s = 0, both_s = 0, mean_s = 0;
  for (const SiteComputation& site : sites) {
    steps_s = std::max(steps_s, site.steps_s);
    update_s = std::max(update_s, site.outer_step_s);
    both_s = std::max(both_s, site.steps_s + site.outer_step_s);
    mean_s = std::max(mean_s, site.steps_s + summary.outer_steps_per_round * site.outer_step_s);
  }
  const bool one_site_is_slowest = both_s == steps_s + update_s;
  if (one_site_is_slowest || updates < 1) return mean_s;
  if (hidden) return mean_s;  // sites do not wait for each other after an update
  return ((summary.rounds - (updates - 1)) * steps_s + (updates - 1) * both_s + update_s) / summary.rounds;
}

RoundTimes round_times(const PlanSummary& summary, const LinkSets& links, const StepSeconds& step,
                       double slowest_compute_s) {
  RoundTimes times;
  times.slowest_compute_s = slowest_compute_s;
  times.waiting_s = summary.steps / summary.rounds * summary.idle_factor * step.equal_part * step.gradients_s;
  const double none = 0;
  times.stages = stage_durations(summary, links, times.slowest_compute_s);
  for (std::size_t i = 0; i < summary.stages.size(); ++i) {
    const Stage& stage = summary.stages[i];
    const double duration_s = times.stages[i].seconds;
    double late_at_end_s = duration_s - before_end_s(stage, step);
    double late_s = late_at_end_s - after_end_s(stage, step) - stage.hidden_hops * links.all.latency_s;
    times.communication_s += stage.times_per_round * duration_s;
    for (; i + 1 < summary.stages.size(); ++i) {  // the parts of this stage
      const Stage& part = summary.stages[i + 1];
      if (!part.part_of_previous) break;
      const double part_s = times.stages[i + 1].seconds - before_end_s(part, step);
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
