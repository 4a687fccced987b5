// Gossip, as in GASLoC: after K local steps every site exchanges its parameters with `gossip_peers` random
// other sites and moves its own parameters towards theirs. The pairs of a round are `gossip_peers` disjoint
// matchings of a random order of the M sites, so no pair exchanges twice in a round. In each matching ⌊M/2⌋
// pairs exchange the whole model, of size S, both ways. If M is odd, one site of each matching has no
// partner. Each site sends B bytes per round, as the mean over sites:
//   B = gossip_peers · 2⌊M/2⌋/M · S
// The busiest port carries gossip_peers · S.
#include "costmodel/methods/all.hpp"
#include "costmodel/methods/shared/random_pairs.hpp"
#include "costmodel/plan/building_blocks.hpp"

namespace fomoe::costmodel {

namespace {

RoundPlan round_plan(const Scenario& scenario, const std::vector<TensorGroup>& groups, std::int64_t index,
                     std::int64_t steps) {
  const auto pairs = random_pairs(scenario, index, scenario.strategy.gossip_peers);
  RoundPlan round;
  round.ops.push_back(compute_op(scenario, "local steps", Work::whole_step, steps, {}));
  round.ops.push_back({"exchange parameters with peers",
                       exchange_in_pairs(scenario, groups, pairs, Content::parameter),
                       {0}});
  round.ops.push_back(compute_op(scenario, "outer step", Work::outer_step, 1, {1}));
  return round;
}

Plan plan(const Scenario& scenario) {
  const std::int64_t local_steps = scenario.strategy.local_steps;
  Plan plan = plan_of_rounds(scenario, local_steps);
  for (RoundClass& rounds : plan.classes) rounds.identical = false;
  plan.round = [=](std::int64_t index) {
    return round_plan(scenario, plan.groups, index, steps_of_round(plan, local_steps, index));
  };
  return plan;
}

PlanSummary formula(const Axes& axes, const Fixed& fixed) {
  PlanSummary summary = rounds_of(axes, fixed, axes.local_steps);
  summary.outer_steps_per_round = 1.0;
  const double others = axes.sites - 1.0;
  const double peers = std::min(fixed.gossip_peers, others);
  const double copies = copies_in_pairs(axes.sites, fixed.gossip_peers);
  summary.sent.dense = copies * bytes_per_parameter(axes, fixed) * fixed.dense_elements;
  summary.sent.expert_sync = copies * bytes_per_parameter(axes, fixed) * fixed.expert_elements;
  const double model_bytes =
      bytes_per_parameter(axes, fixed) * (fixed.dense_elements + fixed.expert_elements);
  Stage stage;
  stage.latency_hops = std::min(others, 1.0);
  stage.bytes = peers * model_bytes;
  stage.pair_bytes = std::min(others, 1.0) * model_bytes;
  summary.add(stage);
  return summary;
}

}  // namespace

Method gossip() {
  Method method;
  method.name = "gossip";
  method.summary =
      "Every K steps, each site exchanges the parameters of the whole model with a few sites drawn at "
      "random.";
  method.axes = {"local_steps", "gossip_peers", "payload_dtype", "parameter_dtype"};
  method.averages_everything = false;
  method.encoded_differences = 0;
  method.encoded_parameters = 1;
  method.source = "Cagnasso et al. 2026, GASLoC (arXiv 2606.11081)";
  method.outer_bytes_per_parameter = 8;  // fp32 parameters before the round and their momentum
  method.not_modelled = "a period of its own for each site";
  method.assumptions = "partners are drawn uniformly, and each pair exchanges the whole model";
  method.plan = plan;
  method.formula = formula;
  return method;
}

}  // namespace fomoe::costmodel
