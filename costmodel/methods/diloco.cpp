// DiLoCo: K local steps, then the pseudo-gradient (parameters before − after) of the whole model is averaged
// among all sites and an outer Nesterov step applied. B = 2(M−1)/M · S per site and round.
#include <algorithm>

#include "costmodel/methods/all.hpp"
#include "costmodel/methods/building_blocks.hpp"

namespace fomoe::costmodel {

namespace {

Plan plan(const Scenario& scenario) {
  const std::int64_t local_steps = scenario.strategy.local_steps;
  Plan plan = plan_of_rounds(scenario, local_steps);
  const Exchange exchange = full_model_exchange(scenario, plan.groups, {Content::pseudo_gradient});
  const std::int64_t steps = plan.steps;
  plan.round = [=](std::int64_t index) {
    RoundPlan round;
    const std::int64_t repeat = std::min(local_steps, steps - index * local_steps);
    round.ops.push_back(compute_op(scenario, "local steps", Work::whole_step, repeat, {}));
    round.ops.push_back(all_reduce_op(scenario, "all-reduce pseudo-gradients", {exchange}, {0}));
    round.ops.push_back(compute_op(scenario, "outer step", Work::outer_step, 1, {1}));
    return round;
  };
  return plan;
}

struct Formula {
  template <class V>
  Summary<V> operator()(const Axes<V>& axes, const Fixed& fixed) const {
    Summary<V> summary = full_model_summary(axes, fixed, axes.local_steps, 1);
    summary.outer_steps_per_round = constant<V>(1);
    return summary;
  }
};

}  // namespace

Method diloco() {
  Method method;
  method.name = "diloco";
  method.summary =
      "pseudo-gradients of the whole model, all-reduced among all sites every K steps; outer Nesterov step";
  method.axes = "local_steps, collective, payload_dtype";
  method.source = "Douillard et al. 2023, DiLoCo (arXiv 2311.08105)";
  method.outer_bytes_per_parameter = 8;  // fp32 anchor and momentum
  method.plan = plan;
  use_formula(method, Formula{});
  return method;
}

}  // namespace fomoe::costmodel
