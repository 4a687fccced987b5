// Steps in which activations travel to experts of other sites and back, in every layer: what expert-parallel
// methods share.
//
// A site's step has tokens = B_g·s/M of its own. In each layer, forward: its dense part, activations out,
// experts, activations back; backward the same in reverse order, with gradients of activations. One such
// transfer is tokens · copies · d elements of a site, spread evenly over all M sites; what goes to itself
// stays.
#pragma once
#include "costmodel/model/router_load.hpp"
#include "costmodel/plan/building_blocks.hpp"
#include "costmodel/plan/method.hpp"

namespace fomoe::costmodel {

struct ExpertTraffic {
  std::int64_t copies_per_token = 1;  // times that one token's activation leaves, for all of its experts
  std::vector<LayerLoad> loads;       // of each layer, or one for all
  bool separate_requests = false;     // from site to site, not as one all-to-all
};

/// Appends both passes of one step; the id of the last operation.
OpId append_expert_step(const Scenario& scenario, const ExpertTraffic& traffic, RoundPlan& round);

/// Gradients of all but the experts, among all sites, then the optimiser. `after`: the backward pass.
void append_dense_synchronisation(const Scenario& scenario, const std::vector<TensorGroup>& groups,
                                  OpId after, RoundPlan& round);

/// A plan of single steps whose dense group holds the whole router: every site scores all experts.
Plan expert_plan(const Scenario& scenario);

/// Refuses experts that do not divide among the sites.
void check_experts_divide(const Scenario& scenario);

/// Refuses a capacity factor: for methods without buffers.
void refuse_capacity_factor(const Scenario& scenario);

/// 4·L transfers of activations, and the all-reduce of dense gradients.
template <class V>
Summary<V> expert_traffic_summary(const Axes<V>& axes, const Fixed& fixed, const V& copies_per_token) {
  Summary<V> summary = rounds_of(axes, fixed, constant<V>(1));
  const V others = min_of(V(axes.sites - 1.0), constant<V>(1));  // 0 where there is one site
  // To one site: tokens · copies · d / M.
  const V tokens = axes.global_batch_sequences * fixed.sequence_length / axes.sites;
  const V pair_bytes = tokens * copies_per_token * fixed.d_model * axes.bytes_per_element / axes.sites;
  Stage<V> activations;
  activations.latency_hops = others;
  activations.bytes = fixed.busiest_rows * (axes.sites - 1.0) * pair_bytes;
  activations.pair_bytes = fixed.busiest_rows * others * pair_bytes;
  activations.times_per_round = constant<V>(4 * fixed.moe_layers);
  summary.add(activations);
  summary.sent.activations = 4 * fixed.moe_layers * fixed.sent_rows * (axes.sites - 1.0) * pair_bytes;

  const V dense_bytes =
      (fixed.dense_elements + fixed.expert_elements - fixed.expert_parameters) * axes.bytes_per_element;
  Stage<V> gradients;
  gradients.latency_hops = all_reduce_hops(fixed.collective, axes.sites);
  gradients.bytes = summary.sent.dense = all_reduce_factor(axes.sites) * dense_bytes;
  gradients.pair_bytes = all_reduce_pair_factor(fixed.collective, axes.sites) * dense_bytes;
  summary.add(gradients);

  // The busiest site computes, in each layer, more rows than the mean, and the others wait for it.
  summary.compute_factor = constant<V>(1 + fixed.expert_compute_share * (fixed.sent_rows - 1));
  summary.idle_factor = constant<V>(fixed.expert_compute_share * (fixed.busiest_rows - fixed.sent_rows));
  const double all = fixed.dense_elements + fixed.expert_elements;
  summary.optimizer_factor = 1 - fixed.expert_parameters / all * (1 - 1 / axes.sites);
  return summary;
}

}  // namespace fomoe::costmodel
