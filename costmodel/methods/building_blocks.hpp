// What methods are built from: tensor groups, payloads, exchanges and rounds, and the same as sums.
#pragma once
#include <cstdint>
#include <vector>

#include "costmodel/placement.hpp"
#include "costmodel/plan.hpp"
#include "costmodel/plan_summary.hpp"

namespace fomoe::costmodel {

/// Group 0: everything dense (with skip-token the whole router too). Group 1 + layer·N_e + expert: that
/// expert and, without skip-token, its router column.
std::vector<TensorGroup> tensor_groups(const Scenario& scenario);
inline constexpr GroupId kDenseGroup = 0;
GroupId expert_group(const Scenario& scenario, int layer, int expert);
/// Groups of every expert of every layer.
std::vector<GroupId> all_expert_groups(const Scenario& scenario);

/// ⌈tokens ÷ global batch⌉.
std::int64_t optimizer_steps(const Scenario& scenario);

std::vector<NodeId> all_workers(const Scenario& scenario);

/// Nodes, groups, steps; rounds of `local_steps` steps, the last one short where they do not divide.
/// `migration_period` T > 0: every T-th round migrates, and rounds differ at random.
Plan plan_of_rounds(const Scenario& scenario, std::int64_t local_steps, std::int64_t migration_period = 0);
Payload make_payload(const std::vector<TensorGroup>& groups, Content content, TrafficClass traffic,
                     ElementType type, std::vector<GroupId> ids);

/// One exchange among all workers with the whole model, once for each content.
Exchange full_model_exchange(const Scenario& scenario, const std::vector<TensorGroup>& groups,
                             const std::vector<Content>& contents);

Pattern all_reduce_pattern(Collective collective);

// --- the same as sums -------------------------------------------------------------------------------

/// Bytes that each of n nodes sends to all-reduce one byte: 2(n−1)/n, for ring and direct alike.
double all_reduce_factor(int nodes);
/// One-way latencies in sequence: ring 2(n−1), direct 2.
double all_reduce_hops(Collective collective, int nodes);
/// The part of all_reduce_factor that goes to one peer: ring, all of it; direct, 2/n.
double all_reduce_pair_factor(Collective collective, int nodes);

/// Bytes of the payload type held by one site: dense, and all its local experts.
struct HeldBytes {
  double dense = 0;
  double experts = 0;
};
HeldBytes held_bytes(const Scenario& scenario);

/// All workers all-reduce the whole model `contents` times over, once a round of `local_steps` steps.
PlanSummary full_model_summary(const Scenario& scenario, std::int64_t local_steps, int contents);

}  // namespace fomoe::costmodel
