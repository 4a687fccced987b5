// Steps in which activations are sent to experts at other sites and back in every layer: the common part of
// the expert-parallel methods.
//
// B_g is the number of sequences in the global batch, s the number of tokens in a sequence, M the number of
// sites and d the model's width d_model. In a step, a site has tokens = B_g·s/M of its own. The forward pass
// of each layer has four parts: the dense part of the layer, the transfer of activations to the experts, the
// experts, and the transfer of activations back. The backward pass has the same parts in reverse order, with
// gradients of activations. In one transfer, a site has tokens · copies · d elements, spread evenly over all
// M sites. The site's share for itself is not sent.
#pragma once
#include "costmodel/compute/step_seconds.hpp"
#include "costmodel/model/flops.hpp"
#include "costmodel/model/router_load.hpp"
#include "costmodel/plan/building_blocks.hpp"
#include "costmodel/plan/method.hpp"

namespace fomoe::costmodel {

struct ExpertTraffic {
  std::int64_t copies_per_token = 1;  // copies of one token's activation that are sent for all its experts
  std::vector<LayerLoad> loads;       // load of each layer, or one entry for all
  bool separate_requests = false;     // one message per pair of sites instead of one all-to-all
  /// The site of an expert keeps nothing between the passes: the backward request sends a token's activation
  /// again, beside the gradient, and the expert runs its forward pass again.
  bool stateless_experts = false;
  /// 2: a site computes the two halves of its batch in turn. The activations of one half travel while the
  /// other half computes, and a site has one channel for both. 1: one after another.
  int halves = 1;
};

/// Format of what is sent to experts: activations in the forward pass, and gradients of their results in the
/// backward pass.
WireFormat dispatch_format(const Strategy& strategy);

/// Appends forward and backward pass of one step. Returns the id of the last operation.
OpId append_expert_step(const Scenario& scenario, const ExpertTraffic& traffic, RoundPlan& round);

/// Appends the all-reduce of all gradients except the experts' among all sites, then the optimiser. `after`
/// is the backward pass.
void append_dense_synchronisation(const Scenario& scenario, const std::vector<TensorGroup>& groups,
                                  OpId after, RoundPlan& round);

/// A plan with one step per round whose dense group includes the whole router, because every site scores all
/// experts.
Plan expert_plan(const Scenario& scenario);

/// Throws InputError if the experts do not divide evenly among the sites.
void check_experts_divide(const Scenario& scenario);

/// Throws InputError if a capacity factor is given, for methods without buffers.
void refuse_capacity_factor(const Scenario& scenario);

/// Transfers of activations in each MoE layer and step: dispatch and combine, forward and backward.
/// Activation checkpointing repeats the two of the forward pass.
inline int transfers_per_layer(bool activation_checkpointing) { return activation_checkpointing ? 6 : 4; }

/// Summary with the transfers of activations, and the all-reduce of dense gradients. With `stateless_experts`
/// one of the transfers of each layer is twice as large, and experts run their forward pass again. With
/// `overlap_dispatch` the summary is a lower bound: either computation or transfers take all of the time.
inline PlanSummary expert_traffic_summary(const Axes& axes, const Fixed& fixed, double copies_per_token,
                                          bool stateless_experts) {
  PlanSummary summary = rounds_of(axes, fixed, 1.0);
  const double others = std::min(axes.sites - 1.0, 1.0);  // 0 if there is only one site
  // Bytes to one site: tokens · copies · d / M elements.
  const double tokens = axes.global_batch_sequences * fixed.sequence_length / axes.sites;
  const double pair_elements = tokens * copies_per_token * fixed.d_model / axes.sites;
  // Half of the transfers of a layer go to the experts, and half of them come back.
  const double each_way = transfers_per_layer(fixed.activation_checkpointing) / 2.0,
               larger = stateless_experts ? 1 : 0;
  const double back = axes.bytes_per_element;
  const double there = fixed.dispatch_bytes > 0 ? fixed.dispatch_bytes : back;
  const auto add = [&](double bytes, double times) {
    Stage stage;
    stage.latency_hops = others;
    stage.bytes = fixed.busiest_rows * (axes.sites - 1.0) * bytes * pair_elements;
    stage.pair_bytes = fixed.busiest_rows * others * bytes * pair_elements;
    stage.times_per_round = times * fixed.moe_layers;
    summary.add(stage);
  };
  add(there, each_way - larger);
  add(back, each_way);
  if (stateless_experts) add(2.0 * there, 1);
  if (fixed.overlap_dispatch) {
    summary.stages.clear();
    Stage all;
    all.latency_hops = 2.0 * (2.0 * each_way + larger) * fixed.moe_layers * others;
    const double bytes = ((each_way + larger) * there + each_way * back) * pair_elements * fixed.moe_layers *
                         fixed.busiest_rows;
    all.bytes = (axes.sites - 1.0) * bytes;
    all.pair_bytes = others * bytes;
    all.hidden_forwards = all.hidden_backwards = 1.0;
    summary.add(all);
    summary.lower_bound = true;
  }
  summary.approximate = leaves_remainder(axes.global_batch_sequences, axes.sites);
  // A site with more rows than others receives more than others, and sends more back.
  summary.uneven_ports = fixed.busiest_rows > fixed.sent_rows * (1 + 1e-12);
  summary.sent.activations = fixed.moe_layers * fixed.sent_rows * (axes.sites - 1.0) * pair_elements *
                             ((each_way + larger) * there + each_way * back);

  const double dense_bytes =
      (fixed.dense_elements + fixed.expert_elements - fixed.expert_parameters) * axes.bytes_per_element;
  Stage gradients;
  gradients.latency_hops = all_reduce_hops(fixed.collective, axes.sites);
  gradients.bytes = summary.sent.dense = all_reduce_factor(axes.sites) * dense_bytes;
  gradients.pair_bytes = all_reduce_pair_factor(fixed.collective, axes.sites) * dense_bytes;
  summary.add(gradients);

  // In each layer the busiest site computes more rows than the mean, and the other sites wait for it.
  // A forward pass that experts run again takes as long as the first one.
  const double forward = forward_share(fixed.repeated_share);
  const double share =
      forward * fixed.expert_compute_share +
      (1 - forward) * expert_share_of_backward(fixed.expert_compute_share, fixed.repeated_share);
  const double passes = share + (stateless_experts ? forward * fixed.expert_compute_share : 0);
  summary.compute_factor = 1 + passes * fixed.sent_rows - share;
  summary.idle_factor = passes * (fixed.busiest_rows - fixed.sent_rows);
  // Measured passes have another share of the forward pass than the FLOPs.
  const bool rows_differ = fixed.sent_rows != 1 || fixed.busiest_rows != 1;
  if (fixed.timed_passes && (stateless_experts || (fixed.repeated_share > 0 && rows_differ)))
    summary.approximate = 1.0;
  const double experts = fixed.expert_parameters / fixed.expert_parallel;
  const double dense = fixed.dense_elements + fixed.expert_elements - fixed.expert_parameters;
  summary.optimizer_factor = (dense + experts / axes.sites) / (dense + experts);
  return summary;
}

}  // namespace fomoe::costmodel
