// NoLoCo: no all-reduce. After K local steps, each site averages its pseudo-gradient and its slow weights
// (its parameters before the round) with those of one random partner. The outer step is Nesterov's with a
// term that pulls the partners' slow weights together (Kolehmainen et al. 2025, eq. 2 and 3). The pairs are
// drawn anew for each round; if M is odd, one site has no partner. The slow weights are known as soon as the
// round begins, so that they are sent while the local steps run (section 3.2 of the paper). Each site sends B
// bytes per round, as the mean over M sites, where S_g is the size of the pseudo-gradients and S_p that of
// the slow weights:
//   B = 2⌊M/2⌋/M · (S_g + S_p)
//   round = max(K·t_step, S_p ÷ rate) + latency + S_g ÷ rate
// t_step is the time of a step. Slow weights that are late share the link with the pseudo-gradients, whose
// latency passes meanwhile. The authors' published code instead sends both payloads after the local
// steps.
#include "costmodel/methods/all.hpp"
#include "costmodel/methods/shared/random_pairs.hpp"
#include "costmodel/plan/building_blocks.hpp"

namespace fomoe::costmodel {

namespace {

Plan plan(const Scenario& scenario) {
  const std::int64_t local_steps = scenario.strategy.local_steps;
  Plan plan = plan_of_rounds(scenario, local_steps);
  for (RoundClass& rounds : plan.classes) rounds.identical = false;
  plan.round = [=](std::int64_t index) {
    const auto pairs = random_pairs(scenario, index, 1);
    RoundPlan round;
    round.ops.push_back(
        compute_op(scenario, "local steps", Work::whole_step, steps_of_round(plan, local_steps, index), {}));
    round.ops.push_back({"slow weights to the partner",
                         exchange_in_pairs(scenario, plan.groups, pairs, Content::parameter),
                         {}});
    round.ops.push_back({"pseudo-gradients to the partner",
                         exchange_in_pairs(scenario, plan.groups, pairs, Content::pseudo_gradient),
                         {0}});
    round.ops.push_back(compute_op(scenario, "outer step", Work::outer_step, 1, {1, 2}));
    return round;
  };
  return plan;
}

PlanSummary formula(const Axes& axes, const Fixed& fixed) {
  PlanSummary summary = rounds_of(axes, fixed, axes.local_steps);
  summary.outer_steps_per_round = 1.0;
  const double any = std::min(axes.sites - 1.0, 1.0);  // 0 if there is only one site
  const double gradient = axes.bytes_per_element, parameter = bytes_per_parameter(axes, fixed);
  const double copies = copies_in_pairs(axes.sites, 1);
  summary.sent.dense = copies * (gradient + parameter) * fixed.dense_elements;
  summary.sent.expert_sync = copies * (gradient + parameter) * fixed.expert_elements;
  const double elements = fixed.dense_elements + fixed.expert_elements;
  Stage slow_weights;
  slow_weights.latency_hops = any;
  slow_weights.bytes = slow_weights.pair_bytes = any * parameter * elements;
  slow_weights.hidden_steps = summary.steps / summary.rounds;  // fewer than K if the last round is short
  slow_weights.hidden_hops = any;
  summary.add(slow_weights);
  Stage pseudo_gradients;
  pseudo_gradients.latency_hops = any;
  pseudo_gradients.bytes = pseudo_gradients.pair_bytes = any * gradient * elements;
  summary.add(pseudo_gradients);
  return summary;
}

}  // namespace

Method noloco() {
  Method method;
  method.name = "noloco";
  method.summary =
      "Every K steps, each site averages pseudo-gradients and slow weights with one site drawn at random; "
      "slow weights are sent while the steps run.";
  method.axes = {"local_steps", "payload_dtype", "parameter_dtype"};
  method.averages_everything = false;
  method.encoded_parameters = 1;  // the slow weights
  method.source = "Kolehmainen et al. 2025, NoLoCo (arXiv 2506.10911)";
  method.outer_bytes_per_parameter = 8;  // fp32 slow weights and momentum
  method.not_modelled =
      "random routing of micro-batches through pipeline stages; groups of more than two sites";
  method.assumptions =
      "slow weights are sent while the local steps run; the published code sends them afterwards";
  method.plan = plan;
  method.formula = formula;
  return method;
}

}  // namespace fomoe::costmodel
