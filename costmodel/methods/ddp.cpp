// Data-parallel training: gradients of the whole model are all-reduced in every step, between the backward
// pass and the optimiser. B = 2(M−1)/M · S per site and step.
#include "costmodel/methods/all.hpp"
#include "costmodel/methods/building_blocks.hpp"

namespace fomoe::costmodel {

namespace {

Plan plan(const Scenario& scenario) {
  Plan plan = plan_of_rounds(scenario, 1);
  if (scenario.strategy.local_steps > 1)
    plan.notes.push_back("ddp synchronises every step: local_steps is ignored");
  RoundPlan round;
  round.ops.push_back(compute_op(scenario, "gradients", Work::gradients, 1, {}));
  round.ops.push_back(average_op(scenario, "average gradients",
                                 {full_model_exchange(scenario, plan.groups, {Content::gradient})}, {0}));
  round.ops.push_back(compute_op(scenario, "optimizer", Work::optimizer, 1, {1}));
  plan.round = [round = std::move(round)](std::int64_t) { return round; };
  return plan;
}

struct Formula {
  template <class V>
  Summary<V> operator()(const Axes<V>& axes, const Fixed& fixed) const {
    return full_model_summary(axes, fixed, constant<V>(1), 1);
  }
};

}  // namespace

Method ddp() {
  Method method;
  method.name = "ddp";
  method.summary = "gradients of the whole model, all-reduced among all sites in every step";
  method.axes = "collective, payload_dtype, compression";
  method.source = "Li et al. 2020, PyTorch Distributed; FoMoE paper, regime 1";
  method.every_step = true;
  method.plan = plan;
  use_formula(method, Formula{});
  return method;
}

}  // namespace fomoe::costmodel
