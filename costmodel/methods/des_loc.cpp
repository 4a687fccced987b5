// DES-LOC: parameters and the two AdamW moments are averaged among all M sites, each with its own period.
// Parameters are averaged at the end of every round, which has K steps. The first moment is averaged in every
// k_u-th round and the second in every k_v-th round, together with the parameters. Each site sends B bytes
// per round (mean), where S is the size of the whole model:
//   B = (1 + 1/k_u + 1/k_v) · 2(M−1)/M · S
// k_u = 3 and k_v = 6 are typical (FoMoE paper).
#include <numeric>

#include "costmodel/methods/all.hpp"
#include "costmodel/plan/building_blocks.hpp"

namespace fomoe::costmodel {

namespace {

bool due(std::int64_t index, std::int64_t period) { return (index + 1) % period == 0; }

Plan plan(const Scenario& scenario) {
  const std::int64_t local_steps = scenario.strategy.local_steps;
  const std::int64_t period1 = scenario.strategy.moment1_period, period2 = scenario.strategy.moment2_period;
  Plan plan = plan_of_rounds(scenario, local_steps);
  classify_rounds(plan, std::lcm(period1, period2),
                  [=](std::int64_t index) { return 2 * due(index, period1) + due(index, period2); });
  plan.round = [=](std::int64_t index) {
    std::vector<Content> contents = {Content::parameter};
    if (due(index, period1)) contents.push_back(Content::moment1);
    if (due(index, period2)) contents.push_back(Content::moment2);
    return local_round(scenario, steps_of_round(plan, local_steps, index),
                       "average parameters and due moments",
                       full_model_exchange(scenario, plan.groups, contents), OuterOptimizer::average);
  };
  return plan;
}

PlanSummary formula(const Axes& axes, const Fixed& fixed) {
  PlanSummary summary = full_model_summary(axes, fixed, axes.local_steps, bytes_per_parameter(axes, fixed));
  // A moment with period k is sent in ⌊rounds/k⌋ rounds of the run.
  const double moments = (std::floor(summary.rounds / fixed.moment1_period) +
                          std::floor(summary.rounds / fixed.moment2_period)) /
                         summary.rounds;
  const double contents = 1.0 + moments;
  summary.sent.dense *= contents;
  summary.sent.expert_sync *= contents;
  summary.stages[0].bytes *= contents;
  summary.stages[0].pair_bytes *= contents;
  return summary;
}

}  // namespace

Method des_loc() {
  Method method;
  method.name = "des_loc";
  method.summary =
      "Every K steps, all sites average the parameters of the whole model. They average the AdamW moments "
      "every few rounds.";
  method.axes = {"local_steps",   "moment1_period",  "moment2_period", "collective",
                 "payload_dtype", "parameter_dtype", "quorum",         "straggler_timeout"};
  method.source = "Iacob et al. 2025, DES-LOC (arXiv 2505.22549)";
  method.not_modelled = "periods of parameters other than K";
  method.assumptions = "moments are sent together with the parameters of their round";
  method.plan = plan;
  method.formula = formula;
  return method;
}

}  // namespace fomoe::costmodel
