// DiPaCo: every one of the M sites trains one path, a whole model that consists of one module of each level.
// The levels cut the layers into parts from input to output, and each level offers C choices of a module.
// Each module is shared by the g = M/C sites whose paths use it. After K local steps the pseudo-gradient of
// each module is averaged among its sites, and an outer Nesterov step is applied. All paths share the
// embedding (assumption). Each site sends B bytes per round, where S is the size of one path and S_embedding
// is the size of the embedding:
//   B = 2(M−1)/M · S_embedding  +  2(g−1)/g · (S − S_embedding)
// Site p takes choice ⌊p/C^l⌋ mod C of level l, as long as C^(l+1) divides M. Deeper levels repeat that
// pattern, so with few sites some combinations of modules belong to no site.
#include <algorithm>
#include <string>

#include "costmodel/methods/all.hpp"
#include "costmodel/plan/building_blocks.hpp"
#include "platforms/support/input_error.hpp"

namespace fomoe::costmodel {

namespace {

// The sites that share each choice of a level.
std::vector<std::vector<NodeId>> sharers(int sites, int choices, int level) {
  int digits = 1, power = choices;  // largest number such that C^digits divides M
  while (choices > 1 && power <= sites / choices && sites % (power * choices) == 0) {
    power *= choices;
    ++digits;
  }
  int stride = 1;
  for (int d = 0; d < level % digits; ++d) stride *= choices;
  std::vector<std::vector<NodeId>> groups(static_cast<std::size_t>(choices));
  for (NodeId site = 0; site < sites; ++site)
    groups[static_cast<std::size_t>(site / stride % choices)].push_back(site);
  return groups;
}

// Groups: the embedding, then the dense part and the experts of each level. Norms outside of the layers go
// with the first and the last level.
std::vector<TensorGroup> module_groups(const Scenario& scenario) {
  const ModelShape& shape = scenario.model;
  const int levels = scenario.strategy.module_levels;
  const std::vector<TensorGroup> of_layers = tensor_groups_by_layer(shape, /*skip_token=*/false);
  std::vector<TensorGroup> groups = {of_layers[kEmbeddingGroup]};
  std::int64_t begin = 0;
  for (int level = 0; level < levels; ++level) {
    const std::int64_t end = begin + chunk_elements(shape.layers, levels, level);
    TensorGroup dense{{TensorClass::attention, TensorClass::norm}, begin, end, 0, 0, 0};
    TensorGroup experts{{TensorClass::router, TensorClass::expert}, begin, end, 0, shape.experts, 0};
    for (std::size_t i = 1; i < of_layers.size(); ++i) {
      if (of_layers[i].layer_begin < begin || of_layers[i].layer_begin >= end) continue;
      const bool is_dense = i <= static_cast<std::size_t>(shape.layers);
      (is_dense ? dense : experts).elements += of_layers[i].elements;
    }
    groups.push_back(std::move(dense));
    groups.push_back(std::move(experts));
    begin = end;
  }
  return groups;
}

Plan plan(const Scenario& scenario) {
  const std::int64_t local_steps = scenario.strategy.local_steps;
  Plan plan = plan_of_rounds(scenario, local_steps);
  plan.groups = module_groups(scenario);
  const auto payload = [&](TrafficClass traffic, GroupId group) {
    return make_payload(plan.groups, Content::pseudo_gradient, traffic, scenario.strategy.wire, {group});
  };
  std::vector<Exchange> exchanges = {{all_workers(scenario), {payload(TrafficClass::dense, 0)}}};
  for (int level = 0; level < scenario.strategy.module_levels; ++level) {
    for (const std::vector<NodeId>& sites :
         sharers(scenario.sites(), scenario.strategy.module_choices, level)) {
      exchanges.push_back(
          {sites,
           {payload(TrafficClass::dense, 1 + 2 * level), payload(TrafficClass::expert_sync, 2 + 2 * level)}});
    }
  }
  plan.round = [scenario, exchanges, local_steps, steps = plan.steps](std::int64_t index) {
    RoundPlan round;
    const std::int64_t repeat = std::min(local_steps, steps - index * local_steps);
    round.ops.push_back(compute_op(scenario, "local steps", Work::whole_step, repeat, {}));
    round.ops.push_back(all_reduce_op(scenario, "all-reduce modules", exchanges, {0}));
    round.ops.push_back(compute_op(scenario, "outer step", Work::outer_step, 1, {1}));
    return round;
  };
  return plan;
}

PlanSummary formula(const Axes& axes, const Fixed& fixed) {
  PlanSummary summary = rounds_of(axes, fixed, axes.local_steps);
  summary.outer_steps_per_round = 1.0;
  const double sharers = axes.sites / fixed.module_choices;
  const double embedding = fixed.embedding_elements * axes.bytes_per_element;
  const double dense = (fixed.dense_elements - fixed.embedding_elements) * axes.bytes_per_element;
  const double experts = fixed.expert_elements * axes.bytes_per_element;
  // With skip-token the dense part of other methods includes the router, but a module keeps its own.
  summary.sent.dense = all_reduce_factor(axes.sites) * embedding + all_reduce_factor(sharers) * dense;
  summary.sent.expert_sync = all_reduce_factor(sharers) * experts;
  Stage stage;
  stage.latency_hops = all_reduce_hops(fixed.collective, axes.sites);
  stage.bytes = summary.sent.total();
  // Upper bound: the bytes between two sites that share every level.
  stage.pair_bytes = all_reduce_pair_factor(fixed.collective, axes.sites) * embedding +
                     all_reduce_pair_factor(fixed.collective, sharers) * (dense + experts);
  summary.add(stage);
  return summary;
}

void check_modules(const Scenario& scenario) {
  const int sites = scenario.sites(), choices = scenario.strategy.module_choices;
  if (choices > sites || sites % choices != 0) {
    int nearest = std::min(choices, sites);
    while (sites % nearest != 0) --nearest;
    throw InputError("strategy.module_choices", std::to_string(choices),
                     "a divisor of the " + std::to_string(sites) +
                         " sites, so that the same number of sites shares each module",
                     std::to_string(nearest));
  }
  if (scenario.strategy.module_levels > scenario.model.layers)
    throw InputError("strategy.module_levels", std::to_string(scenario.strategy.module_levels),
                     "at most the model's " + std::to_string(scenario.model.layers) + " layers",
                     std::to_string(scenario.model.layers));
}

}  // namespace

Method di_paco() {
  Method method;
  method.name = "di_paco";
  method.summary =
      "Every K steps, the sites whose paths use a module average its pseudo-gradients, and all sites average "
      "those of the embedding. An outer Nesterov step follows.";
  method.axes = {"local_steps", "module_levels", "module_choices", "collective", "payload_dtype"};
  method.averages_everything = false;
  method.source = "Douillard et al. 2024, DiPaCo (arXiv 2403.10616)";
  method.outer_bytes_per_parameter = 8;  // fp32 anchor and momentum
  method.check = check_modules;
  method.not_modelled = "more paths than sites; routing and re-sharding of the data among paths";
  method.assumptions = "all paths share the embedding";
  method.plan = plan;
  method.formula = formula;
  return method;
}

}  // namespace fomoe::costmodel
