#include "costmodel/plan/building_blocks.hpp"

#include <algorithm>
#include <map>
#include <numeric>

#include "costmodel/plan/method.hpp"
#include "costmodel/plan/plan_summary.hpp"
#include "costmodel/plan/site_shares.hpp"

namespace fomoe::costmodel {

std::vector<TensorGroup> tensor_groups(const ModelShape& shape, bool skip_token) {
  const ParameterCounts counts = count_parameters(shape);

  std::vector<TensorGroup> groups;
  groups.reserve(1 + static_cast<std::size_t>(moe_layers(shape) * shape.experts));
  TensorGroup dense{{TensorClass::embedding, TensorClass::attention, TensorClass::norm},
                    0,
                    shape.layers,
                    0,
                    shape.experts,
                    counts.dense()};
  if (skip_token) {  // the whole router is dense
    dense.classes.push_back(TensorClass::router);
    dense.elements += counts.router;
  }
  groups.push_back(std::move(dense));

  TensorGroup expert{{TensorClass::expert}, 0, 0, 0, 0, 0};
  if (!skip_token) expert.classes.insert(expert.classes.begin(), TensorClass::router);
  const std::int64_t router_elements = skip_token ? 0 : router_column_elements(shape);
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

std::int64_t dense_layer_elements(const ModelShape& shape, bool skip_token) {
  const ParameterCounts counts = count_parameters(shape);
  if (shape.layers == 0) return 0;
  // Norms are d_model wide. Each layer counts an equal whole number of them.
  const std::int64_t width = std::max<std::int64_t>(1, shape.d_model);
  const std::int64_t norms = counts.norm / width / shape.layers * width;
  const std::int64_t router = skip_token ? counts.router / shape.layers : 0;
  return (counts.attention + counts.dense_ffn) / shape.layers + norms + router;
}

std::vector<TensorGroup> tensor_groups_by_layer(const ModelShape& shape, bool skip_token) {
  const ParameterCounts counts = count_parameters(shape);
  std::vector<TensorGroup> whole = tensor_groups(shape, skip_token);
  const std::int64_t layered = dense_layer_elements(shape, skip_token);
  const std::int64_t left_over = whole[kDenseGroup].elements - counts.embedding - shape.layers * layered;

  std::vector<TensorGroup> groups;
  groups.push_back({{TensorClass::embedding}, 0, 0, 0, 0, counts.embedding});
  if (shape.layers == 0) groups[0].elements += left_over;
  for (std::int64_t layer = 0; layer < shape.layers; ++layer) {
    TensorGroup group{
        {TensorClass::attention, TensorClass::norm}, layer, layer + 1, 0, shape.experts, layered};
    if (skip_token) group.classes.push_back(TensorClass::router);
    if (layer == 0) group.elements += left_over / 2;
    if (layer == shape.layers - 1) group.elements += left_over - left_over / 2;
    groups.push_back(std::move(group));
  }
  groups.insert(groups.end(), whole.begin() + 1, whole.end());
  return groups;
}

std::vector<TensorGroup> tensor_groups_by_layer_and_head(const ModelShape& shape, bool skip_token) {
  std::vector<TensorGroup> groups = tensor_groups_by_layer(shape, skip_token);
  const std::int64_t head = untied_head_elements(shape);
  if (head == 0) return groups;
  groups[kEmbeddingGroup].elements -= head;
  groups.push_back({{TensorClass::unembedding}, 0, 0, 0, 0, head});
  return groups;
}

std::int64_t untied_head_elements(const ModelShape& shape) {
  return shape.tied_embeddings || shape.opaque ? 0 : shape.vocabulary * shape.d_model;
}

GroupId dense_layer_group(int layer) { return 1 + layer; }

GroupId expert_group_by_layer(const ModelShape& shape, int moe_layer, int expert) {
  return expert_group(shape, moe_layer, expert) + static_cast<GroupId>(shape.layers);
}

GroupId expert_group(const ModelShape& shape, int moe_layer, int expert) {
  return static_cast<GroupId>(1 + moe_layer * shape.experts + expert);
}

namespace {

std::vector<GroupId> all_expert_groups(const Scenario& scenario) {
  std::vector<GroupId> ids(static_cast<std::size_t>(moe_layers(scenario.model) * scenario.model.experts));
  std::iota(ids.begin(), ids.end(), 1);
  return ids;
}

}  // namespace

std::vector<NodeId> all_workers(const Scenario& scenario) {
  std::vector<NodeId> nodes;
  for (int site = 0; site < scenario.sites(); ++site) {
    if (sequences_of_work(scenario, site) > 0) nodes.push_back(site);
  }
  return nodes;
}

namespace {

// Says that parameters and moments do not have the format of gradients, or that they are rounded to a few
// bits.
std::string parameter_format_note(const Strategy& strategy) {
  if (!has_axis(*strategy.method, "parameter_dtype")) return "";
  const ElementType type = format_of(strategy, Content::parameter).type;
  if (strategy.parameter_dtype && bits_of(type) < 16)
    return std::string("parameters, moments and outer state are rounded to ") + to_string(type) +
           " on the wire, as strategy.parameter_dtype says; no measured quality holds for this";
  if (strategy.parameter_dtype || type == strategy.wire.type) return "";
  return std::string(to_string(strategy.wire.type)) +
         " holds for differences; where the method sends parameters, moments or outer state, they are " +
         to_string(type) + " (strategy.parameter_dtype)";
}

}  // namespace

std::int64_t migrations_of(std::int64_t rounds, std::int64_t period) { return (rounds - 1) / period; }

Plan plan_of_rounds(const Scenario& scenario, std::int64_t local_steps, std::int64_t migration_period) {
  Plan plan;
  for (const int site : all_workers(scenario)) {
    plan.nodes.push_back({NodeKind::worker, site, sequences_of_work(scenario, site)});
  }
  plan.groups = tensor_groups(scenario.model, scenario.strategy.skip_token);
  plan.steps = optimizer_steps(scenario);

  const std::int64_t full = plan.steps / local_steps;
  const std::int64_t remainder = plan.steps % local_steps;
  plan.rounds = full + (remainder > 0 ? 1 : 0);
  if (migration_period == 0) {
    if (full > 0) plan.classes.push_back({full, local_steps, true, [](std::int64_t i) { return i; }});
  } else {
    const std::int64_t period = migration_period, last = full - 1;
    const std::int64_t migrating = migrations_of(plan.rounds, period);
    if (migrating > 0) {
      plan.classes.push_back(
          {migrating, local_steps, false, [period](std::int64_t i) { return (i + 1) * period - 1; }});
    }
    if (full > migrating) {  // the rounds without migration, with the last one if it ends a period
      plan.classes.push_back({full - migrating, local_steps, false, [period, last](std::int64_t i) {
                                return period == 1 ? last : std::min(i + i / (period - 1), last);
                              }});
    }
  }
  if (remainder > 0) plan.classes.push_back({1, remainder, true, [full](std::int64_t) { return full; }});
  if (scenario.strategy.collective == Collective::store)
    plan.nodes.push_back({NodeKind::store, scenario.sites(), 0});
  if (std::string note = parameter_format_note(scenario.strategy); !note.empty())
    plan.notes.push_back(std::move(note));
  return plan;
}

std::int64_t steps_of_round(const Plan& plan, std::int64_t local_steps, std::int64_t index) {
  return std::min(local_steps, plan.steps - index * local_steps);
}

void overlap_rounds(Plan& plan, std::int64_t local_steps) {
  plan.classes = {{plan.rounds, local_steps, true, [](std::int64_t i) { return i; }, true}};
}

void classify_rounds(Plan& plan, std::int64_t period, const std::function<int(std::int64_t)>& kind) {
  if (plan.classes.empty() || plan.classes[0].count <= 1) return;
  const RoundClass all = plan.classes[0];
  const std::int64_t distinct = std::min(period, all.count);
  std::map<int, std::vector<std::int64_t>> by_kind;  // kind → rounds of one period
  for (std::int64_t round = 0; round < distinct; ++round) by_kind[kind(round)].push_back(round);
  std::vector<RoundClass> classes;
  for (auto& [name, rounds] : by_kind) {
    RoundClass part = all;
    const auto per_period = static_cast<std::int64_t>(rounds.size());
    const std::int64_t remainder = all.count % period;
    part.count = all.count / period * per_period +
                 (std::lower_bound(rounds.begin(), rounds.end(), remainder) - rounds.begin());
    part.round_at = [rounds = rounds, period, per_period](std::int64_t i) {
      return i / per_period * period + rounds[static_cast<std::size_t>(i % per_period)];
    };
    classes.push_back(std::move(part));
  }
  plan.classes.erase(plan.classes.begin());
  plan.classes.insert(plan.classes.begin(), classes.begin(), classes.end());
}

std::vector<Content> averaged_contents(OuterOptimizer optimizer) {
  if (optimizer == OuterOptimizer::average) return {Content::parameter};
  if (optimizer == OuterOptimizer::local_adamw)
    return {Content::parameter, Content::moment1, Content::moment2};
  return {Content::pseudo_gradient};
}

std::string outer_step_name(OuterOptimizer optimizer) {
  return std::string("outer step (") + to_string(optimizer) + ")";
}

WireFormat format_of(const Strategy& strategy, Content content) {
  switch (content) {
    case Content::parameter:
    case Content::moment1:
    case Content::moment2:
    case Content::outer_moment1:
    case Content::outer_moment2:
    case Content::training_state:
      if (strategy.parameter_dtype) return plain_format(*strategy.parameter_dtype);
      return parameter_format(strategy.wire);
    case Content::gradient:
    case Content::pseudo_gradient:
    case Content::coefficient:
    case Content::activation:
    case Content::sequences:
    case Content::key:
      break;
  }
  return strategy.wire;
}

Payload make_payload(const std::vector<TensorGroup>& groups, Content content, TrafficClass traffic,
                     const WireFormat& format, std::vector<GroupId> ids) {
  Payload payload{content, traffic, std::move(ids), format, 0};
  for (const GroupId id : payload.groups) payload.elements += groups[static_cast<std::size_t>(id)].elements;
  return payload;
}

Op all_reduce_op(const Scenario& scenario, std::string name, std::vector<Exchange> exchanges,
                 std::vector<OpId> after) {
  Op op;
  op.name = std::move(name);
  op.what = Transfer{Pattern::all_reduce, scenario.strategy.collective, std::move(exchanges)};
  op.after = std::move(after);
  return op;
}

Op average_op(const Scenario& scenario, std::string name, std::vector<Exchange> exchanges,
              std::vector<OpId> after) {
  if (scenario.strategy.collective == Collective::store) {
    const auto store = static_cast<NodeId>(all_workers(scenario).size());  // see plan_of_rounds()
    return {std::move(name),
            average_through_store(scenario.platform.store.value(), store, std::move(exchanges)),
            std::move(after)};
  }
  Op op = all_reduce_op(scenario, std::move(name), std::move(exchanges), std::move(after));
  if (scenario.strategy.wire.sparse()) std::get<Transfer>(op.what).pattern = Pattern::all_to_all_broadcast;
  return op;
}

RoundPlan local_round(const Scenario& scenario, std::int64_t steps, const char* name,
                      const Exchange& exchange, OuterOptimizer optimizer) {
  RoundPlan round;
  round.ops.push_back(compute_op(scenario, "local steps", Work::whole_step, steps, {}));
  round.ops.push_back(average_op(scenario, name, {exchange}, {0}));
  if (outer_steps_of(optimizer) > 0)
    round.ops.push_back(compute_op(scenario, outer_step_name(optimizer), Work::outer_step, 1, {1}));
  return round;
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
    const WireFormat format = format_of(scenario.strategy, content);
    exchange.payloads.push_back(make_payload(groups, content, TrafficClass::dense, format, {kDenseGroup}));
    if (moe_layers(scenario.model) > 0) {
      exchange.payloads.push_back(
          make_payload(groups, content, TrafficClass::expert_sync, format, all_expert_groups(scenario)));
    }
  }
  return exchange;
}

Exchange layers_exchange(const Scenario& scenario, const std::vector<TensorGroup>& groups, Content content,
                         const std::vector<int>& layers, bool with_tables) {
  std::vector<GroupId> dense, experts;
  if (with_tables) dense.push_back(kEmbeddingGroup);
  for (const int layer : layers) {
    dense.push_back(dense_layer_group(layer));
    const auto moe_layer = moe_layer_of_layer(scenario.model, layer);
    for (int e = 0; moe_layer && e < static_cast<int>(scenario.model.experts); ++e)
      experts.push_back(expert_group_by_layer(scenario.model, static_cast<int>(*moe_layer), e));
  }
  const WireFormat format = format_of(scenario.strategy, content);
  return {all_workers(scenario),
          {make_payload(groups, content, TrafficClass::dense, format, std::move(dense)),
           make_payload(groups, content, TrafficClass::expert_sync, format, std::move(experts))}};
}

}  // namespace fomoe::costmodel
