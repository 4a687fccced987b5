// What plans are built from: tensor groups, payloads, exchanges and rounds.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "costmodel/plan/placement.hpp"
#include "costmodel/plan/plan.hpp"

namespace fomoe::costmodel {

/// Group 0: everything dense (with skip-token the whole router too). Group 1 + i·N_e + expert: that expert
/// of the i-th layer that has experts and, without skip-token, its router column.
std::vector<TensorGroup> tensor_groups(const Scenario& scenario);
inline constexpr GroupId kDenseGroup = 0;
GroupId expert_group(const Scenario& scenario, int moe_layer, int expert);
/// Groups of every expert of every layer.
std::vector<GroupId> all_expert_groups(const Scenario& scenario);

/// Dense elements that every layer has the same of; with skip-token its router too. The norms that only the
/// first and the last layer have (of the embedding, and the final one) are not among them. Where layers
/// differ (some with dense feed-forward parts), the mean.
std::int64_t dense_layer_elements(const Scenario& scenario);

/// The same elements by layer: group 0 the embedding, 1 … L the dense part of each layer (the first and the
/// last with half of the left-over norms each), then the experts.
std::vector<TensorGroup> tensor_groups_by_layer(const Scenario& scenario);
inline constexpr GroupId kEmbeddingGroup = 0;
GroupId dense_layer_group(int layer);
GroupId expert_group_by_layer(const Scenario& scenario, int moe_layer, int expert);

/// One worker a site, at every site that trains; worker n is node n.
std::vector<NodeId> all_workers(const Scenario& scenario);

/// Nodes, groups, steps; rounds of `local_steps` steps, the last one short where they do not divide.
/// `migration_period` T > 0: every T-th round migrates, and rounds differ at random.
Plan plan_of_rounds(const Scenario& scenario, std::int64_t local_steps, std::int64_t migration_period = 0);
/// Of the round, of `local_steps` or what is left.
std::int64_t steps_of_round(const Plan& plan, std::int64_t local_steps, std::int64_t index);
/// Makes one class of all rounds, for methods whose operations reach into the next round.
void overlap_rounds(Plan& plan, std::int64_t local_steps);
/// Splits the rounds of `local_steps` into classes by what `kind(index)` says of them, which repeats every
/// `period` rounds. A last, shorter round stays a class of its own.
void classify_rounds(Plan& plan, std::int64_t period, const std::function<int(std::int64_t)>& kind);

Payload make_payload(const std::vector<TensorGroup>& groups, Content content, TrafficClass traffic,
                     const WireFormat& format, std::vector<GroupId> ids);

/// All workers do `work`, `repeat` times.
Op compute_op(const Scenario& scenario, std::string name, Work work, std::int64_t repeat,
              std::vector<OpId> after);

/// What sites send so that their replicas are averaged, and under what content (see OuterOptimizer).
std::vector<Content> averaged_contents(OuterOptimizer optimizer);
/// "outer step (adam)".
std::string outer_step_name(OuterOptimizer optimizer);

/// Averages each exchange among its nodes: an all-reduce by the scenario's collective, or, where payloads are
/// sparse and do not add up, everybody's payload to everybody.
Op average_op(const Scenario& scenario, std::string name, std::vector<Exchange> exchanges,
              std::vector<OpId> after);

/// An all-reduce by the scenario's collective, after `after`.
Op all_reduce_op(const Scenario& scenario, std::string name, std::vector<Exchange> exchanges,
                 std::vector<OpId> after);

/// The rounds of most methods: K local steps, `exchange` averaged, and an outer step where the optimiser has
/// one.
RoundPlan local_round(const Scenario& scenario, std::int64_t steps, const char* name,
                      const Exchange& exchange, OuterOptimizer optimizer);

/// One exchange among all workers with the whole model, once for each content.
Exchange full_model_exchange(const Scenario& scenario, const std::vector<TensorGroup>& groups,
                             const std::vector<Content>& contents);

/// One exchange among all workers with these whole layers and, where asked, the tables. `groups` are by
/// layer.
Exchange layers_exchange(const Scenario& scenario, const std::vector<TensorGroup>& groups, Content content,
                         const std::vector<int>& layers, bool with_tables);

}  // namespace fomoe::costmodel
