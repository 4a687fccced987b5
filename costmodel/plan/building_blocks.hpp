// Functions from which the methods build their plans: tensor groups, payloads, exchanges, operations and
// rounds.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "costmodel/plan/placement.hpp"
#include "costmodel/plan/plan.hpp"

namespace fomoe::costmodel {

/// Tensor groups of a model. Group 0 has all dense parameters and, with skip-token, also the whole router.
/// Group 1 + i·N_e + expert has that expert of the i-th MoE layer and, without skip-token, the expert's
/// router column. N_e is the number of experts per layer.
std::vector<TensorGroup> tensor_groups(const ModelShape& shape, bool skip_token);
inline constexpr GroupId kDenseGroup = 0;
GroupId expert_group(const ModelShape& shape, int moe_layer, int expert);

/// Dense elements of one layer and, with skip-token, the layer's router. If layers differ because some have
/// dense feed-forward blocks, the result is the mean. Norms that only the first and the last layer have (the
/// embedding norm and the final norm) are excluded.
std::int64_t dense_layer_elements(const ModelShape& shape, bool skip_token);

/// The same elements grouped by layer: group 0 is the embedding, groups 1 … L are the dense part of each
/// layer, and the experts follow. The first and the last layer get half of the norms outside the layers each.
std::vector<TensorGroup> tensor_groups_by_layer(const ModelShape& shape, bool skip_token);
inline constexpr GroupId kEmbeddingGroup = 0;
GroupId dense_layer_group(int layer);
GroupId expert_group_by_layer(const ModelShape& shape, int moe_layer, int expert);

/// The same, with an untied unembedding as a last group of its own, since its gradient is ready first.
std::vector<TensorGroup> tensor_groups_by_layer_and_head(const ModelShape& shape, bool skip_token);

/// Elements of the unembedding if it is a table of its own, otherwise 0. It is 0 for a model of which only
/// counts are known.
std::int64_t untied_head_elements(const ModelShape& shape);

/// The workers of all sites that train, one per site; the worker of site n is node n.
std::vector<NodeId> all_workers(const Scenario& scenario);

/// A plan with nodes, groups, steps, rounds and round classes, but without operations. A round has
/// `local_steps` steps; the last round has fewer if `local_steps` does not divide the number of steps. With
/// `migration_period` T > 0, every T-th round migrates experts, but for the last round: nobody would train
/// with what it moves. The rounds of a class then have equal distributions, but are not identical. With
/// collective = store, the last node is the store.
Plan plan_of_rounds(const Scenario& scenario, std::int64_t local_steps, std::int64_t migration_period = 0);
/// How often experts move in a run: after every `period`-th of `rounds` ≥ 1 rounds, but for the last.
std::int64_t migrations_of(std::int64_t rounds, std::int64_t period);
/// Optimiser steps of the round: `local_steps`, or fewer in the last one.
std::int64_t steps_of_round(const Plan& plan, std::int64_t local_steps, std::int64_t index);
/// Puts all rounds in one class, for methods whose operations extend into the next round.
void overlap_rounds(Plan& plan, std::int64_t local_steps);
/// Splits the class of full rounds by `kind(index)`, which must repeat every `period` rounds. A shorter last
/// round stays a class of its own.
void classify_rounds(Plan& plan, std::int64_t period, const std::function<int(std::int64_t)>& kind);

/// Format of `content` on the wire: Strategy::wire for gradients, pseudo-gradients and activations, and
/// Strategy::parameter_dtype or parameter_format() for everything else.
WireFormat format_of(const Strategy& strategy, Content content);

Payload make_payload(const std::vector<TensorGroup>& groups, Content content, TrafficClass traffic,
                     const WireFormat& format, std::vector<GroupId> ids);

/// An operation in which all workers do `work` `repeat` times.
Op compute_op(const Scenario& scenario, std::string name, Work work, std::int64_t repeat,
              std::vector<OpId> after);

/// Contents that the sites send to average their replicas (see OuterOptimizer).
std::vector<Content> averaged_contents(OuterOptimizer optimizer);
/// Name of the outer step in timelines: "outer step (adam)".
std::string outer_step_name(OuterOptimizer optimizer);

/// Averages each exchange among its nodes, by an all-reduce with the scenario's collective. Sparse payloads
/// do not add up; they go from every node to every other node, unless a store aggregates (plan.hpp).
Op average_op(const Scenario& scenario, std::string name, std::vector<Exchange> exchanges,
              std::vector<OpId> after);

/// An all-reduce with the scenario's collective. It starts after the operations `after`.
Op all_reduce_op(const Scenario& scenario, std::string name, std::vector<Exchange> exchanges,
                 std::vector<OpId> after);

/// The round of most methods: local steps, the average of `exchange`, and an outer step if the optimiser has
/// one.
RoundPlan local_round(const Scenario& scenario, std::int64_t steps, const char* name,
                      const Exchange& exchange, OuterOptimizer optimizer);

/// One exchange among all workers that carries the whole model once for each content.
Exchange full_model_exchange(const Scenario& scenario, const std::vector<TensorGroup>& groups,
                             const std::vector<Content>& contents);

/// One exchange among all workers that carries whole layers and, with `with_tables`, the embedding tables.
/// `groups` must come from tensor_groups_by_layer().
Exchange layers_exchange(const Scenario& scenario, const std::vector<TensorGroup>& groups, Content content,
                         const std::vector<int>& layers, bool with_tables);

}  // namespace fomoe::costmodel
