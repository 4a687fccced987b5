// Remote experts (Learning@home): a token's site sends the token's activation to the sites of its k experts,
// one request for each expert, and receives the answers. The site of an expert keeps nothing between
// requests: the backward request sends the activation again beside the gradient of the answer, and the expert
// runs its forward pass again before the backward pass, so that experts have 8 instead of 6 FLOPs per
// parameter. There are no collectives of activations, no padded buffers and no dropped tokens. Each expert is
// on one of the M sites and is never synchronised. Each site sends B bytes per step:
//   B = 5·L · tokens·k·d·bytes · (M−1)/M   +   2(M−1)/M · S_dense
// L is the number of MoE layers, `tokens` the number of tokens of the site in a step, d the width d_model,
// `bytes` the size of an element, and S_dense the size of the dense gradients. With activation checkpointing,
// requests of the forward pass are sent twice: 7·L instead of 5·L, and 10 instead of 8 FLOPs per parameter.
// Assumption: dense gradients are all-reduced in every step. The paper trains asynchronously and does not say
// how sites agree on the dense part. In this model, a site waits for the answers to its requests.
#include "costmodel/methods/all.hpp"
#include "costmodel/methods/model_parallel/expert_traffic.hpp"

namespace fomoe::costmodel {

namespace {

Plan plan(const Scenario& scenario) {
  ExpertTraffic traffic;
  traffic.copies_per_token = scenario.model.active_experts;
  traffic.loads = router_loads(scenario);
  traffic.separate_requests = true;
  traffic.stateless_experts = true;
  Plan plan = expert_plan(scenario);
  plan.notes.push_back(
      "remote_experts: sites wait for the results of remote experts; the dense part is all-reduced in every "
      "step");
  RoundPlan round;
  const OpId backward = append_expert_step(scenario, traffic, round);
  append_dense_synchronisation(scenario, plan.groups, backward, round);
  plan.round = [round = std::move(round)](std::int64_t) { return round; };
  return plan;
}

PlanSummary formula(const Axes& axes, const Fixed& fixed) {
  return expert_traffic_summary(axes, fixed, fixed.active_experts, true);
}

// Requests carry exactly the rows that the router chooses, so there is no capacity factor.
void check_requests(const Scenario& scenario) {
  check_experts_divide(scenario);
  refuse_capacity_factor(scenario.strategy);
}

}  // namespace

Method remote_experts() {
  Method method;
  method.name = "remote_experts";
  method.summary =
      "In every layer, forward and backward, each site sends activations to the sites of the k experts of "
      "each token and back. Experts are never synchronised.";
  method.axes = {"router", "collective", "payload_dtype"};
  method.source = "Ryabinin and Gusev 2020, Learning@home (arXiv 2002.04013)";
  method.every_step = true;
  method.inside_step = always;
  method.residency = Residency::experts_sharded;
  method.check = check_requests;
  method.not_modelled = "asynchronous updates of experts, and the look-up of experts among changing sites";
  method.assumptions =
      "dense gradients are all-reduced in every step; the paper does not say how sites agree on the dense "
      "part";
  method.plan = plan;
  method.formula = formula;
  return method;
}

}  // namespace fomoe::costmodel
