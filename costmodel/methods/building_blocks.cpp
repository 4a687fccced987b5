#include "costmodel/methods/building_blocks.hpp"

#include <algorithm>
#include <numeric>

#include "costmodel/flops.hpp"

namespace fomoe::costmodel {

std::vector<TensorGroup> tensor_groups(const Scenario& scenario) {
  const ModelShape& shape = scenario.model;
  const ParameterCounts counts = count_parameters(shape);
  const bool whole_router_dense = scenario.strategy.skip_token;

  std::vector<TensorGroup> groups;
  groups.reserve(1 + static_cast<std::size_t>(shape.layers * shape.experts));
  TensorGroup dense{
      {TensorClass::embedding, TensorClass::attention, TensorClass::norm}, 0, shape.layers, 0, shape.experts,
      counts.embedding + counts.attention + counts.dense_ffn + counts.norm};
  if (whole_router_dense) {
    dense.classes.push_back(TensorClass::router);
    dense.elements += counts.router;
  }
  groups.push_back(std::move(dense));

  TensorGroup expert{{TensorClass::expert}, 0, 0, 0, 0, expert_elements(shape)};
  if (!whole_router_dense) {
    expert.classes.insert(expert.classes.begin(), TensorClass::router);
    expert.elements += router_column_elements(shape);
  }
  for (std::int64_t layer = 0; layer < shape.layers; ++layer) {
    for (std::int64_t e = 0; e < shape.experts; ++e) {
      expert.layer_begin = layer;
      expert.layer_end = layer + 1;
      expert.expert_begin = e;
      expert.expert_end = e + 1;
      groups.push_back(expert);
    }
  }
  return groups;
}

GroupId expert_group(const Scenario& scenario, int layer, int expert) {
  return static_cast<GroupId>(1 + layer * scenario.model.experts + expert);
}

std::vector<GroupId> all_expert_groups(const Scenario& scenario) {
  std::vector<GroupId> ids(static_cast<std::size_t>(scenario.model.layers * scenario.model.experts));
  std::iota(ids.begin(), ids.end(), 1);
  return ids;
}

std::int64_t optimizer_steps(const Scenario& scenario) {
  const std::int64_t tokens_per_step =
      scenario.workload.global_batch_sequences * scenario.model.sequence_length;
  return (scenario.workload.tokens + tokens_per_step - 1) / tokens_per_step;
}

std::vector<NodeId> all_workers(const Scenario& scenario) {
  std::vector<NodeId> nodes(static_cast<std::size_t>(scenario.sites()));
  std::iota(nodes.begin(), nodes.end(), 0);
  return nodes;
}

Plan plan_of_rounds(const Scenario& scenario, std::int64_t local_steps, std::int64_t migration_period) {
  Plan plan;
  for (int site = 0; site < scenario.sites(); ++site) plan.nodes.push_back({NodeKind::worker, site});
  plan.groups = tensor_groups(scenario);
  plan.steps = optimizer_steps(scenario);

  const std::int64_t full = plan.steps / local_steps;
  const std::int64_t remainder = plan.steps % local_steps;
  plan.rounds = full + (remainder > 0 ? 1 : 0);
  if (migration_period == 0) {
    if (full > 0) plan.classes.push_back({full, local_steps, true, [](std::int64_t i) { return i; }});
  } else {
    const std::int64_t period = migration_period;
    const std::int64_t migrating = full / period;
    if (migrating > 0) {
      plan.classes.push_back(
          {migrating, local_steps, false, [period](std::int64_t i) { return (i + 1) * period - 1; }});
    }
    if (full > migrating) {  // period > 1: all others
      plan.classes.push_back(
          {full - migrating, local_steps, false, [period](std::int64_t i) { return i + i / (period - 1); }});
    }
  }
  if (remainder > 0) plan.classes.push_back({1, remainder, true, [full](std::int64_t) { return full; }});
  return plan;
}

Payload make_payload(const std::vector<TensorGroup>& groups, Content content, TrafficClass traffic,
                     ElementType type, std::vector<GroupId> ids) {
  Payload payload{content, traffic, std::move(ids), type, 0};
  for (const GroupId id : payload.groups) payload.elements += groups[static_cast<std::size_t>(id)].elements;
  return payload;
}

Exchange full_model_exchange(const Scenario& scenario, const std::vector<TensorGroup>& groups,
                             const std::vector<Content>& contents) {
  Exchange exchange{all_workers(scenario), {}};
  for (const Content content : contents) {
    const ElementType type = scenario.strategy.payload_dtype;
    exchange.payloads.push_back(make_payload(groups, content, TrafficClass::dense, type, {kDenseGroup}));
    exchange.payloads.push_back(
        make_payload(groups, content, TrafficClass::expert_sync, type, all_expert_groups(scenario)));
  }
  return exchange;
}

Pattern all_reduce_pattern(Collective collective) {
  return collective == Collective::ring ? Pattern::ring_all_reduce : Pattern::direct_all_reduce;
}

double all_reduce_factor(int nodes) { return 2.0 * (nodes - 1) / nodes; }

double all_reduce_hops(Collective collective, int nodes) {
  if (nodes <= 1) return 0;
  return collective == Collective::ring ? 2.0 * (nodes - 1) : 2.0;
}

double all_reduce_pair_factor(Collective collective, int nodes) {
  if (nodes <= 1) return 0;
  return collective == Collective::ring ? all_reduce_factor(nodes) : 2.0 / nodes;
}

HeldBytes held_bytes(const Scenario& scenario) {
  const ModelShape& shape = scenario.model;
  const ParameterCounts counts = count_parameters(shape);
  const bool whole_router_dense = scenario.strategy.skip_token;
  const std::int64_t dense = counts.embedding + counts.attention + counts.dense_ffn + counts.norm +
                             (whole_router_dense ? counts.router : 0);
  const std::int64_t expert =
      expert_elements(shape) + (whole_router_dense ? 0 : router_column_elements(shape));
  const int width = bytes_of(scenario.strategy.payload_dtype);
  return {static_cast<double>(dense * width),
          static_cast<double>(shape.layers * local_experts(scenario) * expert * width)};
}

PlanSummary full_model_summary(const Scenario& scenario, std::int64_t local_steps, int contents) {
  const int sites = scenario.sites();
  const Collective collective = scenario.strategy.collective;
  const HeldBytes held = held_bytes(scenario);
  PlanSummary summary;
  summary.steps = optimizer_steps(scenario);
  summary.rounds = (summary.steps + local_steps - 1) / local_steps;
  summary.sent.dense = contents * all_reduce_factor(sites) * held.dense;
  summary.sent.expert_sync = contents * all_reduce_factor(sites) * held.experts;
  summary.stages.push_back(
      {all_reduce_hops(collective, sites), summary.sent.total(),
       contents * all_reduce_pair_factor(collective, sites) * (held.dense + held.experts), 1});
  return summary;
}

}  // namespace fomoe::costmodel
