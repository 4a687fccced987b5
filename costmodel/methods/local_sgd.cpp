// Local SGD: after K local steps, the parameters of the whole model are averaged among all M sites. There is
// no other state or traffic. Each site sends B bytes per round, where S is the size of the parameters:
//   B = 2(M−1)/M · S
#include "costmodel/methods/all.hpp"
#include "costmodel/plan/building_blocks.hpp"

namespace fomoe::costmodel {

namespace {

Plan plan(const Scenario& scenario) {
  const std::int64_t local_steps = scenario.strategy.local_steps;
  Plan plan = plan_of_rounds(scenario, local_steps);
  const Exchange exchange = full_model_exchange(scenario, plan.groups, {Content::parameter});
  plan.round = [=](std::int64_t index) {
    return local_round(scenario, steps_of_round(plan, local_steps, index), "average parameters", exchange,
                       OuterOptimizer::average);
  };
  return plan;
}

PlanSummary formula(const Axes& axes, const Fixed& fixed) {
  return full_model_summary(axes, fixed, axes.local_steps, bytes_per_parameter(axes, fixed));
}

}  // namespace

Method local_sgd() {
  Method method;
  method.name = "local_sgd";
  method.summary = "Every K steps, all sites average the parameters of the whole model.";
  method.axes = {"local_steps",     "collective", "payload_dtype",
                 "parameter_dtype", "quorum",     "straggler_timeout"};
  method.source = "Stich 2018, Local SGD (arXiv 1805.09767)";
  method.not_modelled = "momentum of the averages (SlowMo)";
  method.assumptions = "every site averages in every round";
  method.through_store = true;
  method.plan = plan;
  method.formula = formula;
  return method;
}

}  // namespace fomoe::costmodel
