// What plans are built from: tensor groups, payloads, exchanges and rounds.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "costmodel/placement.hpp"
#include "costmodel/plan.hpp"

namespace fomoe::costmodel {

/// Group 0: everything dense (with skip-token the whole router too). Group 1 + i·N_e + expert: that expert
/// of the i-th layer that has experts and, without skip-token, its router column.
std::vector<TensorGroup> tensor_groups(const Scenario& scenario);
inline constexpr GroupId kDenseGroup = 0;
GroupId expert_group(const Scenario& scenario, int moe_layer, int expert);
/// Groups of every expert of every layer.
std::vector<GroupId> all_expert_groups(const Scenario& scenario);

/// ⌈tokens ÷ global batch⌉.
std::int64_t optimizer_steps(const Scenario& scenario);

std::vector<NodeId> all_workers(const Scenario& scenario);

/// Nodes, groups, steps; rounds of `local_steps` steps, the last one short where they do not divide.
/// `migration_period` T > 0: every T-th round migrates, and rounds differ at random.
Plan plan_of_rounds(const Scenario& scenario, std::int64_t local_steps, std::int64_t migration_period = 0);
Payload make_payload(const std::vector<TensorGroup>& groups, Content content, TrafficClass traffic,
                     const WireFormat& format, std::vector<GroupId> ids);

/// All workers do `work`, `repeat` times.
Op compute_op(const Scenario& scenario, std::string name, Work work, std::int64_t repeat,
              std::vector<OpId> after);

/// An all-reduce by the scenario's collective, after `after`.
Op all_reduce_op(const Scenario& scenario, std::string name, std::vector<Exchange> exchanges,
                 std::vector<OpId> after);

/// One exchange among all workers with the whole model, once for each content.
Exchange full_model_exchange(const Scenario& scenario, const std::vector<TensorGroup>& groups,
                             const std::vector<Content>& contents);

}  // namespace fomoe::costmodel
