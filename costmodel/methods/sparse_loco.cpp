// SparseLoCo: like DiLoCo, but a site sends only the largest values of its pseudo-gradient, 64 of every 4096,
// each as 2 bits with a 12-bit position. Values that are not sent are added to the next pseudo-gradient
// (error feedback), in place of an outer momentum. Sites keep different positions, so payloads cannot be
// summed on the way: every site's payload goes to every other site, and a site's traffic grows with the
// number of sites M. Each site sends B bytes per round, where S is the number of elements of the model:
//   B = (M−1) · S · 64/4096 · (2 + 12)/8
// Through a store, each site uploads once, and downloads the result or the payloads of the others
// (plan.hpp). `payload_dtype` and `compression` change these numbers; entropy-coded positions have 7.4 bits.
// The codebook of the 2-bit values is not counted.
#include "costmodel/methods/all.hpp"
#include "costmodel/plan/building_blocks.hpp"

namespace fomoe::costmodel {

namespace {

Plan plan(const Scenario& scenario) {
  const std::int64_t local_steps = scenario.strategy.local_steps;
  Plan plan = plan_of_rounds(scenario, local_steps);
  const Exchange exchange = full_model_exchange(scenario, plan.groups, {Content::pseudo_gradient});
  const char* const name = "sparse pseudo-gradients to all sites";
  // Payloads are not summed on the way, even if the scenario keeps every value.
  const Op to_all =
      scenario.strategy.collective == Collective::store
          ? average_op(scenario, name, {exchange}, {0})
          : Op{name, Transfer{Pattern::all_to_all_broadcast, scenario.strategy.collective, {exchange}}, {0}};
  plan.round = [=](std::int64_t index) {
    RoundPlan round;
    round.ops.push_back(
        compute_op(scenario, "local steps", Work::whole_step, steps_of_round(plan, local_steps, index), {}));
    round.ops.push_back(to_all);
    round.ops.push_back(compute_op(scenario, "outer step", Work::outer_step, 1, {1}));
    return round;
  };
  return plan;
}

PlanSummary formula(const Axes& axes, const Fixed& whole) {
  Fixed fixed = whole;
  fixed.sparse_payloads = true;  // even if the scenario keeps every value: payloads are not summed on the way
  PlanSummary summary = full_model_summary(axes, fixed, axes.local_steps, axes.bytes_per_element);
  summary.outer_steps_per_round = 1.0;
  return summary;
}

}  // namespace

Method sparse_loco() {
  Method method;
  method.name = "sparse_loco";
  method.summary =
      "Every K steps, every site sends the largest 1/64 of its pseudo-gradients to all other sites, with 2 "
      "bits and a position per value.";
  method.axes = {"local_steps", "collective", "payload_dtype", "compression", "quorum", "straggler_timeout"};
  method.source = "Sarfi et al. 2025, SparseLoCo (arXiv 2508.15706)";
  method.without_outer_momentum = true;
  method.outer_bytes_per_parameter = 8;  // fp32 anchor and error feedback
  method.usual_wire = top_k_format(ElementType::int2, 64.0 / 4096, 12);
  method.through_store = true;
  method.not_modelled = "peers that are chosen anew in each round";
  method.assumptions =
      "codebooks of the 2-bit values are too small to count; fomoe-train adds all of what was kept back, "
      "where "
      "the authors let it decay (trainer.error_feedback_decay)";
  method.plan = plan;
  method.formula = formula;
  return method;
}

}  // namespace fomoe::costmodel
