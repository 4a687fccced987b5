// Numbers of a scenario that determine the memory and the intra-site communication of a site. SiteModel is
// the same in every row of a sweep; SiteLoad varies by row.
#pragma once
#include "costmodel/inputs/scenario.hpp"
#include "costmodel/model/fragment_turns.hpp"
#include "costmodel/model/stack_shape.hpp"
#include "costmodel/plan/plan_summary.hpp"

namespace fomoe::costmodel {

struct SiteModel {
  bool opaque = false;  // only the counts of the model are known
  SiteGpus gpus;        // without the count, which SiteLoad has
  double layers = 0, moe_layers = 0, d_model = 0, sequence_length = 0;
  double blocks = 0;              // attention, or what stands in its place, and feed-forward parts
  double embedding_elements = 0;  // both tables if the unembedding is not tied
  double table_elements = 0;      // elements of one embedding table: vocabulary · d_model
  double key_value_elements = 0;  // of a token in a layer with attention
  double attention_elements = 0;  // the same with queries and outputs
  double experts = 0, active_experts = 0;
  bool skip_token = false;
  double expert_padding = 1;  // rows of an expert's buffer ÷ mean rows: the capacity factor, if there is one
  double micro_batch_sequences = 0;  // from the scenario or the profile; 0: not given
  double outer_bytes_per_parameter = 0, moment_bytes_per_parameter = 8;
  bool outer_state_of_embedding = true;
  /// Share of the layers in a fragment that is averaged while the site trains on; 0: nothing is.
  double in_flight_share = 0;
  FragmentsInFlight in_flight;
  /// Bytes of a gradient in a step of one micro-batch, and in the sums over several.
  double gradient_bytes_of_one_pass = 4, gradient_bytes = 4;
  double outer_step_s_per_parameter = 0;                   // measured by the profile; 0: not measured
  double encoded_differences = 1, encoded_parameters = 0;  // see Method
  /// All data-parallel GPUs of a site shard the model (fsdp), whatever gpus.sharded says.
  bool shards_all_gpus = false;
  bool reduces_once = false;  // sums the gradients of all micro-batches unsharded (full_shard_no_sync)
  /// Micro-batches of a step if each site is a pipeline stage, and 0 otherwise.
  double pipeline_micro_batches = 0;
  bool one_forward_one_backward = false;  // 1F1B instead of GPipe
  StackShape stack_shape;                 // for the memory of other frameworks than fomoe-train
  // Activation bytes that fomoe-train's forward pass keeps: see activations.hpp.
  double dense_layer_bytes_per_token = 0, moe_layer_bytes_per_token = 0;
  double bytes_per_token_and_expert = 0;
  double outer_norm_bytes_per_token = 0, logit_bytes_per_token = 0;
};
SiteModel site_model(const Scenario& scenario);

struct Method;

/// Bytes per parameter of outer optimiser state. If the scenario cannot choose the outer optimiser, this is
/// the method's own value. Otherwise it is the fp32 state of `optimizer`: the parameters before the round
/// (anchor), the outer momentum and, for Adam and Yogi, a second moment. Averaging keeps no state.
double outer_bytes_per_parameter(const Method& method, OuterOptimizer optimizer);

/// Sets the rates of the GPUs, which affect times but neither counts nor memory.
void set_rates(SiteModel& model, const SiteGpus& gpus);

struct SiteLoad {
  double gpus;
  /// Numbers of parameters of one replica. Without skip-token, `experts` includes the router.
  double dense, experts;
  double executed_experts;  // experts that compute for a token in one layer, mean over tokens
  double sequences;         // sequences of the site in one optimiser step
  double kept_share = 1;    // share of the parameters that a site keeps; 1/M if M sites shard them
  // The sites as stages of a pipeline: their number, the index of this one, and the sequences of the global
  // batch.
  double site_stages = 1.0, site_stage = 0.0, batch_sequences = 0.0;
  double gathered_weights_share = 0;    // share of the weights that a step gathers in addition
  double gathered_gradients_share = 0;  // the same of gradients
  double gradient_bytes = 4;            // of a parameter, see gradient_bytes()
};

struct ByteRange {
  double low = 0, high = 0;
};

/// What a GPU needs: its allocated bytes with those outside of the allocator, which decide whether a run
/// fits. Between `needed` and `most`, which is what the allocator may reserve instead, a run may fail because
/// of fragments. fomoe-train's memory is compared as it is allocated.
struct GpuNeed {
  double needed = 0, most = 0;
  ByteRange reserved, outside;
};

/// Bytes of the gradient of a parameter in a step with this many sequences for each replica.
inline double gradient_bytes(const SiteModel& model, double sequences) {
  return sequences > model.micro_batch_sequences ? model.gradient_bytes : model.gradient_bytes_of_one_pass;
}

/// Experts that compute for a token in one layer: min(k, N_le), or k·N_le/N_e with skip-token. k is
/// active_experts, and the site holds N_le of the N_e experts of the layer. Because layers of a site differ
/// by at most one expert, the mean over the layers is that of the mean N_le.
inline double executed_experts(const SiteModel& model, double local_experts) {
  if (model.skip_token) return model.active_experts * local_experts / std::max(model.experts, 1.0);
  return std::min(model.active_experts, local_experts);
}

/// The load of a site, without its sequences. `scenario` is that of the site (AtSite); `model`, `fixed` and
/// `axes` are those of the scenario.
SiteLoad site_load(const Scenario& scenario, int site, const SiteModel& model, const Fixed& fixed,
                   const Axes& axes);

/// Throws InputError if the parallel degrees do not fit the model or the GPU count.
void check_site_gpus(const Scenario& scenario);

/// Sequences of one replica in one forward and backward pass; 0 if neither the scenario nor the profile gives
/// it.
std::int64_t micro_batch_sequences(const Scenario& scenario);
/// Passes of a step of the first site, which has ⌈batch ÷ sites⌉ sequences; one if no micro-batch is given.
/// If sites differ, the most passes of any site and the smallest shares.
StepPasses step_passes(const Scenario& scenario);

}  // namespace fomoe::costmodel
