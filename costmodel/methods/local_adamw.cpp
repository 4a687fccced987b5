// LocalAdamW: after K local steps, parameters and both moments of the whole model are averaged among all M
// sites. Each site sends B bytes per round, where S is the size of the model's parameters:
//   B = 3 · 2(M−1)/M · S
#include "costmodel/methods/all.hpp"
#include "costmodel/plan/building_blocks.hpp"

namespace fomoe::costmodel {

namespace {

Plan plan(const Scenario& scenario) {
  const std::int64_t local_steps = scenario.strategy.local_steps;
  Plan plan = plan_of_rounds(scenario, local_steps);
  const Exchange exchange =
      full_model_exchange(scenario, plan.groups, averaged_contents(OuterOptimizer::local_adamw));
  plan.round = [=](std::int64_t index) {
    return local_round(scenario, steps_of_round(plan, local_steps, index), "average parameters and moments",
                       exchange, OuterOptimizer::local_adamw);
  };
  return plan;
}

PlanSummary formula(const Axes& axes, const Fixed& fixed) {
  return full_model_summary(axes, fixed, axes.local_steps,
                            contents_of(OuterOptimizer::local_adamw) * bytes_per_parameter(axes, fixed));
}

}  // namespace

Method local_adamw() {
  Method method;
  method.name = "local_adamw";
  method.summary =
      "Every K steps, all sites average the parameters and both AdamW moments of the whole model.";
  method.axes = {"local_steps",     "collective", "payload_dtype",
                 "parameter_dtype", "quorum",     "straggler_timeout"};
  method.source = "Cheng and Glasgow 2025, Local Adam; FoMoE paper, eq. sparse_bytes_cost (factor 3)";
  method.not_modelled = "moments that are averaged less often than parameters: use des_loc";
  method.assumptions = "parameters and both moments are one payload";
  method.through_store = true;
  method.plan = plan;
  method.formula = formula;
  return method;
}

}  // namespace fomoe::costmodel
