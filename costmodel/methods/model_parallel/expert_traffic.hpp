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
void refuse_capacity_factor(const Strategy& strategy);

/// Transfers of activations in each MoE layer and step: dispatch and combine, forward and backward.
/// Activation checkpointing repeats the two of the forward pass.
inline int transfers_per_layer(bool activation_checkpointing) { return activation_checkpointing ? 6 : 4; }

/// Summary with the transfers of activations, and the all-reduce of dense gradients. With `stateless_experts`
/// one of the transfers of each layer is twice as large, and experts run their forward pass again. With
/// `overlap_dispatch` the summary is a lower bound: either computation or transfers take all of the time.
PlanSummary expert_traffic_summary(const Axes& axes, const Fixed& fixed, double copies_per_token,
                                   bool stateless_experts);

}  // namespace fomoe::costmodel
