// DeMo, decoupled momentum: every site keeps its own momentum of the gradients. In every step it takes the
// discrete cosine transform of the momentum in blocks of 64·64 values, sends the k largest coefficients of
// each block to all other sites, and subtracts them from its momentum. All sites update the parameters with
// the sign of the mean of the coefficients (Peng, Quesnelle, Kingma 2024). Sites choose different
// coefficients, so payloads cannot be summed on the way. Each site sends B bytes per step to M−1 others,
// where S is the number of elements of the model:
//   B = (M−1) · S · k/4096 · (4 + 8)
// A coefficient is an fp32 value with an int64 position, as in the authors' code, whose default is k = 32.
// The paper's table of traffic counts one copy, S·k/4096·12 bytes. `payload_dtype` and `compression` change
// the format. The optimiser keeps one momentum instead of AdamW's two moments.
#include "costmodel/methods/all.hpp"
#include "costmodel/plan/building_blocks.hpp"

namespace fomoe::costmodel {

namespace {

Plan plan(const Scenario& scenario) {
  Plan plan = plan_of_rounds(scenario, 1);
  if (scenario.strategy.local_steps > 1)
    plan.notes.push_back("demo synchronises in every step, so local_steps is ignored");
  const Exchange exchange = full_model_exchange(scenario, plan.groups, {Content::coefficient});
  RoundPlan round;
  round.ops.push_back(compute_op(scenario, "gradients", Work::gradients, 1, {}));
  round.ops.push_back({"coefficients to all sites",
                       Transfer{Pattern::all_to_all_broadcast, scenario.strategy.collective, {exchange}},
                       {0}});
  round.ops.push_back(compute_op(scenario, "optimizer", Work::optimizer, 1, {1}));
  plan.round = [round = std::move(round)](std::int64_t) { return round; };
  return plan;
}

PlanSummary formula(const Axes& axes, const Fixed& whole) {
  Fixed fixed = whole;
  fixed.sparse_payloads = true;  // even if all coefficients are sent: payloads are not summed on the way
  return full_model_summary(axes, fixed, 1.0, axes.bytes_per_element);
}

}  // namespace

Method demo() {
  Method method;
  method.name = "demo";
  method.summary =
      "In every step, every site sends the largest coefficients of its transformed momentum, 32 of every "
      "4096, to all other sites.";
  method.axes = {"collective", "payload_dtype", "compression", "quorum", "straggler_timeout"};
  method.source = "Peng et al. 2024, DeMo: Decoupled Momentum Optimization (arXiv 2411.19870)";
  method.every_step = true;
  method.moment_bytes_per_parameter = 4;  // one fp32 momentum
  method.usual_wire = top_k_format(ElementType::fp32, 32.0 / 4096, 64);
  method.not_modelled =
      "the time of the cosine transform; blocks that are smaller than 64·64 at the edges of tensors";
  method.assumptions = "an int64 position for each coefficient, as in the authors' code";
  method.plan = plan;
  method.formula = formula;
  return method;
}

}  // namespace fomoe::costmodel
