#include "costmodel/methods/building_blocks.hpp"

#include <algorithm>
#include <numeric>

#include "costmodel/closed_form.hpp"
#include "costmodel/flops.hpp"
#include "costmodel/ring_order.hpp"

namespace fomoe::costmodel {

std::vector<TensorGroup> tensor_groups(const Scenario& scenario) {
  const ModelShape& shape = scenario.model;
  const ParameterCounts counts = count_parameters(shape);
  const bool whole_router_dense = scenario.strategy.skip_token;

  std::vector<TensorGroup> groups;
  groups.reserve(1 + static_cast<std::size_t>(moe_layers(shape) * shape.experts));
  TensorGroup dense{{TensorClass::embedding, TensorClass::attention, TensorClass::norm},
                    0,
                    shape.layers,
                    0,
                    shape.experts,
                    counts.dense()};
  if (whole_router_dense) {
    dense.classes.push_back(TensorClass::router);
    dense.elements += counts.router;
  }
  groups.push_back(std::move(dense));

  TensorGroup expert{{TensorClass::expert}, 0, 0, 0, 0, 0};
  if (!whole_router_dense) expert.classes.insert(expert.classes.begin(), TensorClass::router);
  const std::int64_t router_elements = whole_router_dense ? 0 : router_column_elements(shape);
  for (std::int64_t i = 0; i < moe_layers(shape); ++i) {
    for (std::int64_t e = 0; e < shape.experts; ++e) {
      expert.elements = expert_elements(shape, i * shape.experts + e) + router_elements;
      expert.layer_begin = layer_of_moe_layer(shape, i);
      expert.layer_end = expert.layer_begin + 1;
      expert.expert_begin = e;
      expert.expert_end = e + 1;
      groups.push_back(expert);
    }
  }
  return groups;
}

GroupId expert_group(const Scenario& scenario, int moe_layer, int expert) {
  return static_cast<GroupId>(1 + moe_layer * scenario.model.experts + expert);
}

std::vector<GroupId> all_expert_groups(const Scenario& scenario) {
  std::vector<GroupId> ids(static_cast<std::size_t>(moe_layers(scenario.model) * scenario.model.experts));
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
  for (int site = 0; site < scenario.sites(); ++site) {
    plan.nodes.push_back(
        {NodeKind::worker, site, static_cast<double>(local_batch_sequences(scenario, site))});
  }
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
  if (std::string note = ring_order_note(scenario); !note.empty()) plan.notes.push_back(std::move(note));
  return plan;
}

Payload make_payload(const std::vector<TensorGroup>& groups, Content content, TrafficClass traffic,
                     const WireFormat& format, std::vector<GroupId> ids) {
  Payload payload{content, traffic, std::move(ids), format, 0};
  for (const GroupId id : payload.groups) payload.elements += groups[static_cast<std::size_t>(id)].elements;
  return payload;
}

Op all_reduce_op(const Scenario& scenario, std::string name, std::vector<Exchange> exchanges,
                 std::vector<OpId> after) {
  RingOrders orders(scenario);
  for (Exchange& exchange : exchanges) orders.apply(exchange.nodes);
  Op op;
  op.name = std::move(name);
  op.what = Transfer{Pattern::all_reduce, scenario.strategy.collective, std::move(exchanges)};
  op.after = std::move(after);
  return op;
}

Op compute_op(const Scenario& scenario, std::string name, Work work, std::int64_t repeat,
              std::vector<OpId> after) {
  Op op;
  op.name = std::move(name);
  op.what = Compute{work, all_workers(scenario), repeat, 1};
  op.after = std::move(after);
  return op;
}

Exchange full_model_exchange(const Scenario& scenario, const std::vector<TensorGroup>& groups,
                             const std::vector<Content>& contents) {
  Exchange exchange{all_workers(scenario), {}};
  for (const Content content : contents) {
    const WireFormat& format = scenario.strategy.wire;
    exchange.payloads.push_back(make_payload(groups, content, TrafficClass::dense, format, {kDenseGroup}));
    if (moe_layers(scenario.model) > 0) {
      exchange.payloads.push_back(
          make_payload(groups, content, TrafficClass::expert_sync, format, all_expert_groups(scenario)));
    }
  }
  return exchange;
}

}  // namespace fomoe::costmodel
