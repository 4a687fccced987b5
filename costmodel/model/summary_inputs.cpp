#include "costmodel/model/summary_inputs.hpp"

#include "costmodel/model/flops.hpp"
#include "costmodel/model/router_load.hpp"
#include "costmodel/model/site_model.hpp"
#include "costmodel/plan/building_blocks.hpp"
#include "costmodel/plan/method.hpp"
#include "costmodel/plan/site_shares.hpp"

namespace fomoe::costmodel {

Axes axes_of(const Scenario& scenario) {
  const Strategy& strategy = scenario.strategy;
  Axes axes;
  axes.sites = scenario.sites();
  axes.local_steps = static_cast<double>(strategy.local_steps);
  axes.expert_overlap = effective_overlap(scenario);
  axes.reshuffle_rounds = static_cast<double>(strategy.reshuffle_rounds);
  axes.overlap_steps = static_cast<double>(strategy.overlap_steps);
  axes.fragments = strategy.fragments;
  axes.tokens = static_cast<double>(scenario.workload.tokens);
  axes.global_batch_sequences = static_cast<double>(scenario.workload.global_batch_sequences);
  axes.gpus_per_site = scenario.gpus.count;
  axes.bytes_per_element = strategy.wire.bytes_per_element();
  return axes;
}

Fixed fixed_of(const Scenario& scenario) {
  const ModelShape& shape = scenario.model;
  const ParameterCounts counts = count_parameters(shape);
  const auto router = static_cast<double>(counts.router);
  const bool whole_router_dense = scenario.strategy.skip_token;
  Fixed fixed;
  fixed.dense_elements = static_cast<double>(counts.dense()) + (whole_router_dense ? router : 0);
  fixed.expert_elements = static_cast<double>(counts.expert) + (whole_router_dense ? 0 : router);
  fixed.embedding_elements = static_cast<double>(counts.embedding);
  fixed.layered_elements =
      static_cast<double>(dense_layer_elements(shape, scenario.strategy.skip_token) * shape.layers);
  fixed.sequence_length = static_cast<double>(shape.sequence_length);
  fixed.d_model = static_cast<double>(shape.d_model);
  fixed.layers = static_cast<double>(shape.layers);
  fixed.moe_layers = static_cast<double>(moe_layers(shape));
  fixed.experts = static_cast<double>(shape.experts);
  fixed.active_experts = static_cast<double>(shape.active_experts);
  fixed.collective = {scenario.strategy.collective, static_cast<double>(scenario.strategy.regions)};
  if (scenario.platform.store)
    fixed.store = {scenario.platform.store->aggregates, scenario.strategy.wire,
                   scenario.platform.store->result_share};
  fixed.secure_aggregation = scenario.strategy.secure_aggregation;
  fixed.placement = scenario.strategy.placement;
  fixed.outer_optimizer = scenario.strategy.outer_optimizer;
  fixed.migrated_contents =
      migrated_contents_of(scenario.strategy.outer_optimizer, scenario.strategy.outer_state_on_migration);
  if (scenario.strategy.parameter_dtype)
    fixed.parameter_bytes = plain_format(*scenario.strategy.parameter_dtype).bytes_per_element();
  fixed.sparse_payloads = scenario.strategy.wire.sparse();
  fixed.moment1_period = static_cast<double>(scenario.strategy.moment1_period);
  fixed.moment2_period = static_cast<double>(scenario.strategy.moment2_period);
  fixed.global_period = static_cast<double>(scenario.strategy.global_period);
  fixed.fragment_pattern = scenario.strategy.fragment_pattern;
  fixed.layerwise = scenario.strategy.layerwise && has_axis(*scenario.strategy.method, "layerwise");
  fixed.overlap_dispatch =
      scenario.strategy.overlap_dispatch && has_axis(*scenario.strategy.method, "overlap_dispatch");
  fixed.expert_division = scenario.gpus.expert_division();
  fixed.schedule = scenario.strategy.schedule;
  if (has_axis(*scenario.strategy.method, "sharding")) fixed.sharding = scenario.strategy.sharding;
  fixed.gossip_peers = scenario.strategy.gossip_peers;
  fixed.tied_elements = shape.tied_embeddings ? fixed.embedding_elements : 0;
  fixed.head_elements = static_cast<double>(untied_head_elements(shape));
  fixed.expert_parameters = static_cast<double>(counts.expert);
  const FlopsPerToken flops = flops_per_token(shape, fixed.experts, false, FlopsAccounting::mechanism);
  fixed.expert_compute_share = flops.expert / flops.total();
  fixed.repeated_share = repeated_share(scenario.gpus, flops, unembedding_flops(shape));
  fixed.timed_passes = std::holds_alternative<ProfiledCompute>(scenario.compute);
  fixed.max_sites_per_token = scenario.strategy.max_sites_per_token;
  if (has_axis(*scenario.strategy.method, "stage_sites")) fixed.stage_sites = scenario.strategy.stage_sites;
  fixed.micro_batches = static_cast<double>(scenario.strategy.micro_batches);
  fixed.activation_checkpointing = scenario.gpus.activation_checkpointing;
  fixed.passes = step_passes(scenario);
  const HeadShares head = head_shares(scenario.model, scenario.gpus, flops_per_token(scenario));
  fixed.head_of_forward = head.forward;
  fixed.head_of_backward = head.backward;
  fixed.module_choices = scenario.strategy.module_choices;
  if (scenario.strategy.dispatch_dtype && has_axis(*scenario.strategy.method, "dispatch_dtype"))
    fixed.dispatch_bytes = dispatch_wire(*scenario.strategy.dispatch_dtype).bytes_per_element();
  const std::vector<LayerLoad> loads = router_loads(scenario);
  fixed.sent_rows = fixed.busiest_rows = 0;
  for (const LayerLoad& load : loads) {
    fixed.sent_rows += load.mean_site_rows() / static_cast<double>(loads.size());
    fixed.busiest_rows += load.busiest_site_rows() / static_cast<double>(loads.size());
  }
  return fixed;
}

}  // namespace fomoe::costmodel
