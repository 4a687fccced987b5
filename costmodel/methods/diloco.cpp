// DiLoCo: after K local steps the pseudo-gradient (parameters before − after) of the whole model is averaged
// among all M sites, and an outer step is applied. The outer optimiser is Nesterov's or, as in FedOpt, Adam's
// or Yogi's. This choice changes only the state that a site keeps. Each site sends B bytes per round, where S
// is the size of the whole model:
//   B = 2(M−1)/M · S
// With `layerwise`, the layers are sent one after another behind the last backward pass, and the next round's
// first forward pass waits for them. These are Streaming DiLoCo's rounds with one fragment and no overlapped
// steps.
#include "costmodel/methods/all.hpp"
#include "costmodel/methods/shared/fragment_formula.hpp"
#include "costmodel/methods/shared/fragment_rounds.hpp"
#include "costmodel/plan/building_blocks.hpp"

namespace fomoe::costmodel {

namespace {

Plan plan(const Scenario& scenario) {
  const std::int64_t local_steps = scenario.strategy.local_steps;
  const OuterOptimizer optimizer = scenario.strategy.outer_optimizer;
  if (scenario.strategy.layerwise) {
    Scenario one_fragment = scenario;
    one_fragment.strategy.fragments = 1;
    one_fragment.strategy.overlap_steps = 0;
    return plan_of_fragments(one_fragment, averaged_contents(optimizer));
  }
  Plan plan = plan_of_rounds(scenario, local_steps);
  const Exchange exchange = full_model_exchange(scenario, plan.groups, averaged_contents(optimizer));
  plan.round = [=](std::int64_t index) {
    return local_round(scenario, steps_of_round(plan, local_steps, index), "average pseudo-gradients",
                       exchange, optimizer);
  };
  return plan;
}

PlanSummary formula(const Axes& axes, const Fixed& fixed) {
  const double bytes =
      contents_of(fixed.outer_optimizer) * averaged_bytes_per_element(axes, fixed, fixed.outer_optimizer);
  PlanSummary summary;
  if (fixed.layerwise) {
    Axes one_fragment = axes;
    one_fragment.fragments = 1.0;
    one_fragment.overlap_steps = 0.0;
    summary = summary_of_fragments(one_fragment, fixed, bytes);
  } else {
    summary = full_model_summary(axes, fixed, axes.local_steps, bytes);
    summary.outer_steps_per_round = 1.0;
  }
  summary.outer_steps_per_round *= outer_steps_of(fixed.outer_optimizer);
  return summary;
}

}  // namespace

Method diloco() {
  Method method;
  method.name = "diloco";
  method.summary =
      "Every K steps, all sites average the pseudo-gradients of the whole model. An outer Nesterov step "
      "follows.";
  method.axes = {"local_steps",     "outer_optimizer", "layerwise", "collective",       "payload_dtype",
                 "parameter_dtype", "compression",     "quorum",    "straggler_timeout"};
  method.inside_step = sends_layers;
  method.check = check_fragments;
  method.source =
      "Douillard et al. 2023, DiLoCo (arXiv 2311.08105); adam and yogi: Reddi et al. 2021, FedOpt (arXiv "
      "2003.00295)";
  method.assumptions =
      "the pseudo-gradient of the whole model is one payload, sent after the last local step, unless "
      "layerwise is set";
  method.through_store = true;
  method.plan = plan;
  method.formula = formula;
  return method;
}

}  // namespace fomoe::costmodel
