// Centralised training, the baseline of comparisons: the first site trains on the whole global batch, the
// other sites are idle, and nothing crosses the WAN.
#include "costmodel/methods/all.hpp"
#include "costmodel/plan/building_blocks.hpp"

namespace fomoe::costmodel {

namespace {

Plan plan(const Scenario& scenario) {
  Plan plan = plan_of_rounds(scenario, 1);
  plan.notes.push_back(
      "centralised: the first site trains on the whole global batch, and the other sites are idle");
  if (std::holds_alternative<GivenStepTime>(scenario.compute))
    plan.notes.push_back(
        "centralised: the given step time is used as the time of the whole global batch on one site");
  RoundPlan round;
  round.ops.push_back(compute_op(scenario, "step", Work::whole_step, 1, {}));
  plan.round = [round = std::move(round)](std::int64_t) { return round; };
  return plan;
}

PlanSummary formula(const Axes& axes, const Fixed& fixed) { return rounds_of(axes, fixed, 1.0); }

}  // namespace

Method centralised() {
  Method method;
  method.name = "centralised";
  method.summary =
      "The first site trains on the whole global batch. The other sites are idle, and nothing is sent.";
  method.axes = {};
  method.source = "the baseline of every comparison; FoMoE paper, \"Experimental Setting\"";
  method.every_step = true;
  method.one_site = true;
  method.not_modelled = "other sites that help with data or evaluation";
  method.assumptions = "the first site has the GPUs for the whole batch";
  method.plan = plan;
  method.formula = formula;
  return method;
}

}  // namespace fomoe::costmodel
