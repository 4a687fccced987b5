#include "costmodel/methods/shared/one_round_delay.hpp"

#include <algorithm>
#include <cmath>

#include "costmodel/plan/building_blocks.hpp"

namespace fomoe::costmodel {

Plan plan_with_delay(const Scenario& scenario) {
  const std::int64_t local_steps = scenario.strategy.local_steps;
  Plan plan = plan_of_rounds(scenario, local_steps);
  overlap_rounds(plan, local_steps);
  const Exchange exchange = full_model_exchange(scenario, plan.groups, {Content::pseudo_gradient});
  plan.round = [=](std::int64_t index) {
    constexpr OpId kLocalSteps = 0, kOuterStep = 1, kAverage = 2;
    RoundPlan round;
    round.ops.push_back(
        compute_op(scenario, "local steps", Work::whole_step, steps_of_round(plan, local_steps, index), {}));
    // Round 0 has no average to apply.
    round.ops.push_back(compute_op(scenario, "outer step of the previous round", Work::outer_step,
                                   index == 0 ? 0 : 1, {kLocalSteps}));
    round.ops.back().after_earlier = {{kAverage, 1}};
    round.ops.push_back(average_op(scenario, "average pseudo-gradients", {exchange}, {kOuterStep}));
    round.ops.back().detached = true;
    return round;
  };
  return plan;
}

PlanSummary delay_formula(const Axes& axes, const Fixed& fixed) {
  PlanSummary summary = full_model_summary(axes, fixed, axes.local_steps, axes.bytes_per_element);
  summary.outer_steps_per_round = 1.0 - 1.0 / summary.rounds;  // the first round has no average to apply
  summary.stages[0].hidden_steps = axes.local_steps;
  summary.stages[0].shown_at_end = true;
  return summary;
}

}  // namespace fomoe::costmodel
