// DEPT: every site keeps its own embedding. Only the transformer's body is averaged among all M sites, as in
// DiLoCo. Each site sends B bytes per round, where S is the size of the whole model and S_embedding is the
// size of the embedding:
//   B = 2(M−1)/M · (S − S_embedding)
// This is the SPEC variant. model.vocabulary may be a site's own vocabulary, since no other site needs it.
#include "costmodel/methods/all.hpp"
#include "costmodel/plan/building_blocks.hpp"

namespace fomoe::costmodel {

namespace {

Plan plan(const Scenario& scenario) {
  const std::int64_t local_steps = scenario.strategy.local_steps;
  const OuterOptimizer optimizer = scenario.strategy.outer_optimizer;
  Plan plan = plan_of_rounds(scenario, local_steps);
  plan.groups = tensor_groups_by_layer(scenario.model, scenario.strategy.skip_token);
  std::vector<GroupId> dense, experts;
  for (int layer = 0; layer < static_cast<int>(scenario.model.layers); ++layer) {
    dense.push_back(dense_layer_group(layer));
  }
  for (int layer = 0; layer < static_cast<int>(moe_layers(scenario.model)); ++layer) {
    for (int expert = 0; expert < static_cast<int>(scenario.model.experts); ++expert)
      experts.push_back(expert_group_by_layer(scenario.model, layer, expert));
  }
  Exchange exchange{all_workers(scenario), {}};
  for (const Content content : averaged_contents(optimizer)) {
    const WireFormat format = format_of(scenario.strategy, content);
    exchange.payloads.push_back(make_payload(plan.groups, content, TrafficClass::dense, format, dense));
    exchange.payloads.push_back(
        make_payload(plan.groups, content, TrafficClass::expert_sync, format, experts));
  }
  plan.round = [=](std::int64_t index) {
    RoundPlan round = local_round(scenario, steps_of_round(plan, local_steps, index),
                                  "average all but embeddings", exchange, optimizer);
    // The outer step leaves out the embedding, which remains as its site trained it.
    if (outer_steps_of(optimizer) > 0) std::get<Compute>(round.ops.back().what).whole_model = false;
    return round;
  };
  return plan;
}

PlanSummary formula(const Axes& axes, const Fixed& whole) {
  Fixed fixed = whole;
  fixed.dense_elements -= fixed.embedding_elements;
  PlanSummary summary = full_model_summary(
      axes, fixed, axes.local_steps,
      contents_of(fixed.outer_optimizer) * averaged_bytes_per_element(axes, fixed, fixed.outer_optimizer));
  summary.outer_steps_per_round = outer_steps_of(fixed.outer_optimizer);
  return summary;
}

}  // namespace

Method dept() {
  Method method;
  method.name = "dept";
  method.summary =
      "Every K steps, all sites average the pseudo-gradients of all parameters except the embedding. Each "
      "site keeps its own embedding.";
  method.axes = {"local_steps",     "outer_optimizer", "collective", "payload_dtype",
                 "parameter_dtype", "compression",     "quorum",     "straggler_timeout"};
  method.averages_everything = false;
  method.own_embedding = true;
  method.source = "Iacob et al. 2025, DEPT (ICLR; its SPEC variant)";
  method.not_modelled =
      "other variants are diloco: GLOB averages everything, and TRIM has a model.vocabulary of one site's "
      "rows (an upper bound, since rows that only some sites have are averaged among fewer)";
  method.assumptions = "both tables of an untied embedding stay at their site, without outer state";
  method.through_store = true;
  method.plan = plan;
  method.formula = formula;
  return method;
}

}  // namespace fomoe::costmodel
