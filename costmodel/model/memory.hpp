// Memory that training needs on a GPU and on a site, by class.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "costmodel/inputs/scenario.hpp"
#include "costmodel/model/activations.hpp"
#include "costmodel/model/parallelism.hpp"
#include "platforms/provenance.hpp"

namespace fomoe::costmodel {

/// Memory in bytes for mixed-precision AdamW. Weights, master weights, moments and gradients have
/// 2 + 4 + 8 + 4 = 18 B per parameter (FoMoE paper, "Memory Footprint"); with step times of fomoe-train in
/// bf16 and one micro-batch in a step, gradients have 2 B. The outer state is the parameters
/// before the round (4 B) and a momentum (4 B).
struct MemoryBytes {
  double weights = 0;           // 2 B per parameter
  double master_weights = 0;    // 4 B per parameter
  double moments = 0;           // 8 B per parameter with AdamW
  double gradients = 0;         // 4 B per parameter, or 2 B
  double outer_state = 0;       // 8 B per parameter if the method has outer state on the device
  double gathered_weights = 0;  // ZeRO 3: 2 B per parameter of the layer in computation
  /// Of one micro-batch; 0 if its size is not given. See activations_beside_gradients().
  double activations = 0;
  [[nodiscard]] double total() const {
    return weights + master_weights + moments + gradients + outer_state + gathered_weights + activations;
  }
};

/// Activations beside the gradients where a step is one pass of fomoe-train. Two moments may be the fullest.
/// At the end of the forward pass, all activations exist, and of the gradients only that of the unembedding:
/// it is computed there, in 2 B per element, or from several chunks of logits in 4 B while the 2 B of the
/// next chunk are added. At the end of the backward pass, all gradients exist, and the activations of one
/// layer.
inline double activations_beside_gradients(const SiteModel& model, double tokens, double activations,
                                           double gradients) {
  const double chunks = tokens * model.logit_bytes_per_token / model.logit_chunk_bytes;
  const double unembedding = model.table_elements * (2.0 + 4.0 * several(chunks));
  return std::max(activations + unembedding - gradients, activations / std::max(model.layers, 1.0));
}

/// Memory of one GPU of a pipeline stage, with micro-batches of `micro_batch_sequences` sequences. If this
/// number is 0, activations are not counted.
inline MemoryBytes memory_of_stage(const SiteModel& model, const SiteLoad& load, int stage,
                                   double micro_batch_sequences) {
  const SiteGpus& gpus = model.gpus;
  const StageParameters held = stage_parameters(model, load, stage);
  const double whole = held.dense + held.experts;
  const double parameters = whole * load.kept_share;
  const double degree = sharded_degree(model, load);
  const double sharded = parameters / degree;
  MemoryBytes memory;
  memory.weights = 2.0 * (gpus.zero_stage >= 3 ? sharded : parameters);
  memory.gradients = load.gradient_bytes * (gpus.zero_stage >= 2 ? sharded : parameters);
  memory.master_weights = 4.0 * sharded;
  memory.moments = model.moment_bytes_per_parameter * sharded;
  if (gpus.outer_state_on == OuterStateOn::device) {
    const double tables = stage_tables(model, load, stage) / static_cast<double>(gpus.tensor_parallel);
    const double with_outer_state =
        model.outer_state_of_embedding ? parameters : (parameters - tables * load.kept_share);
    memory.outer_state = model.outer_bytes_per_parameter * with_outer_state / degree;
  }
  if (gpus.sharded > 1 && gpus.zero_stage == 3 && !model.shards_all_gpus)
    memory.gathered_weights = 2.0 * largest_layer_parameters(model, load);
  memory.gathered_weights += 2.0 * whole * load.gathered_weights_share;
  memory.gradients += load.gradient_bytes * whole * load.gathered_gradients_share;
  memory.activations = activation_bytes(model, load, micro_batch_sequences, stage);
  if (model.gradient_bytes_of_one_pass < 4) {
    const double one_pass = (4.0 - load.gradient_bytes) / (4.0 - model.gradient_bytes_of_one_pass);
    const double tokens = micro_batch_sequences * model.sequence_length;
    memory.activations =
        one_pass * activations_beside_gradients(model, tokens, memory.activations, memory.gradients) +
        (1.0 - one_pass) * memory.activations;
  }
  return memory;
}

struct Method;

/// Bytes per parameter of outer optimiser state. If the scenario cannot choose the outer optimiser, this is
/// the method's own value. Otherwise it is the fp32 state of `optimizer`: the parameters before the round
/// (anchor), the outer momentum and, for Adam and Yogi, a second moment. Averaging keeps no state.
double outer_bytes_per_parameter(const Method& method, OuterOptimizer optimizer);

/// Memory of a site: sum over its GPUs.
inline MemoryBytes memory_of_site(const SiteModel& model, const SiteLoad& load) {
  const double gpus_per_stage = load.gpus / static_cast<double>(model.gpus.pipeline_parallel);
  MemoryBytes site;
  for (int stage = 0; stage < model.gpus.pipeline_parallel; ++stage) {
    const MemoryBytes gpu = memory_of_stage(model, load, stage, replica_micro_batch(model, load));
    site.weights += gpus_per_stage * gpu.weights;
    site.master_weights += gpus_per_stage * gpu.master_weights;
    site.moments += gpus_per_stage * gpu.moments;
    site.gradients += gpus_per_stage * gpu.gradients;
    site.outer_state += gpus_per_stage * gpu.outer_state;
    site.gathered_weights += gpus_per_stage * gpu.gathered_weights;
    site.activations += gpus_per_stage * gpu.activations;
  }
  return site;
}

/// The load of the first or the last site of a pipeline across sites, one of which is the fullest. The first
/// one keeps most activations, the last one has the logits.
inline SiteLoad at_end_of_pipeline(SiteLoad load, bool last) {
  if (last) load.site_stage = load.site_stages - 1.0;
  return load;
}
/// Number of ends to look at: 1 if sites are not pipeline stages.
inline int pipeline_ends(const SiteModel& model) { return model.pipeline_micro_batches > 0 ? 2 : 1; }

/// Total bytes of the fullest GPU of a site, which is in the pipeline stage that holds most.
inline double bytes_of_fullest_gpu(const SiteModel& model, const SiteLoad& load) {
  double most = 0;
  for (int end = 0; end < pipeline_ends(model); ++end) {
    const SiteLoad at_end = at_end_of_pipeline(load, end == 1);
    const double micro_batch = replica_micro_batch(model, load);
    for (int stage = 0; stage < model.gpus.pipeline_parallel; ++stage)
      most = std::max(most, memory_of_stage(model, at_end, stage, micro_batch).total());
  }
  return most;
}

/// Total bytes of the fullest site.
inline double bytes_of_fullest_site(const SiteModel& model, const SiteLoad& load) {
  double most = 0;
  for (int end = 0; end < pipeline_ends(model); ++end)
    most = std::max(most, memory_of_site(model, at_end_of_pipeline(load, end == 1)).total());
  return most;
}

/// What decides which of several sites is the fullest one. A GPU of unknown memory counts as less full than
/// any other.
inline double fullness(double needed_bytes, double available_bytes) {
  return available_bytes > 0 ? needed_bytes / available_bytes : needed_bytes * 1e-30;
}

/// The site whose GPUs are fullest, relative to their memory. If no memory is given, the one that needs most.
int fullest_site(const Scenario& scenario);

/// Bytes that the fullest GPU of all sites needs, and its memory; `available` is 0 if it is not given.
struct GpuMemory {
  double needed = 0, available = 0;
};
GpuMemory fullest_gpu(const Scenario& scenario);

/// Memory of the fullest GPU of a site, with the scenario's micro-batch or with the given one.
MemoryBytes memory_per_gpu(const Scenario& scenario);
MemoryBytes memory_per_gpu(const Scenario& scenario, double micro_batch_sequences);
MemoryBytes memory_per_site(const Scenario& scenario);
/// Host memory of a site in bytes. It is one copy of the outer state if the outer state is on the host
/// (outer_state_on = host), otherwise 0.
double host_bytes_per_site(const Scenario& scenario);

/// Parameters of one replica: all dense parameters, O_e/M of the experts and, without skip-token, O_e/M of
/// the router. O_e is the number of sites that hold each expert, and M is the number of sites.
std::int64_t parameters_per_site(const Scenario& scenario);

/// The largest micro-batch with which the fullest GPU stays within its memory; 0 if not even one sequence
/// fits. Empty if the GPU memory is not given or if activations are unknown (opaque models).
std::optional<std::int64_t> largest_micro_batch_sequences(const Scenario& scenario);

/// The report's statement on what the memory figures include.
Provenance memory_provenance(const Scenario& scenario);

}  // namespace fomoe::costmodel
