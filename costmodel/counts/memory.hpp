// Memory that training needs on a GPU and on a site, by class.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "costmodel/counts/counts.hpp"
#include "costmodel/counts/stacks.hpp"
#include "costmodel/inputs/scenario.hpp"
#include "costmodel/model/activations.hpp"
#include "costmodel/model/parallelism.hpp"
#include "platforms/provenance.hpp"

namespace fomoe::costmodel {

/// Memory in bytes for mixed-precision AdamW. Weights, master weights, moments and gradients have
/// 2 + 4 + 8 + 4 = 18 B per parameter (FoMoE paper, "Memory Footprint") in fomoe-train and Megatron-LM, and
/// other sizes in other frameworks (inputs/training_stack.hpp). With step times of fomoe-train in bf16 and
/// one micro-batch in a step, gradients have 2 B. The outer state is the parameters before the round (4 B)
/// and a momentum (4 B).
struct MemoryBytes {
  double weights = 0;
  double master_weights = 0;
  double moments = 0;
  double gradients = 0;
  /// 8 B per parameter if the method has outer state on the device, and 4 B per parameter of a fragment that
  /// is in flight
  double outer_state = 0;
  double gathered_weights = 0;  // ZeRO 3: 2 B per parameter of the layer in computation
  /// Of one micro-batch; 0 if its size is not given. See activations_beside_gradients().
  double activations = 0;
  // Of other frameworks than fomoe-train, see WorkingBytes; with step times of fomoe-train in bf16,
  // workspaces too.
  double at_peak = 0, buffers = 0, workspaces = 0;
  double cached = 0;  // in what the allocator reserves, not in what it has allocated

  static constexpr double MemoryBytes::*kMembers[] = {
      &MemoryBytes::weights,     &MemoryBytes::master_weights, &MemoryBytes::moments,
      &MemoryBytes::gradients,   &MemoryBytes::outer_state,    &MemoryBytes::gathered_weights,
      &MemoryBytes::activations, &MemoryBytes::at_peak,        &MemoryBytes::buffers,
      &MemoryBytes::workspaces,  &MemoryBytes::cached};
  /// Allocated bytes at the fullest moment.
  [[nodiscard]] double total() const {
    return weights + master_weights + moments + gradients + outer_state + gathered_weights + activations +
           at_peak + buffers + workspaces;
  }
};

/// What a GPU needs for this memory.
GpuNeed need_of(const SiteModel& model, const SiteLoad& load, const MemoryBytes& memory);

/// Activations beside the gradients where a step is one pass of fomoe-train. Two moments may be the fullest.
/// At the end of the forward pass, all activations exist, and of the gradients only that of the unembedding:
/// it is computed there, in 2 B per element, or from several chunks of logits in 4 B while the 2 B of the
/// next chunk are added. At the end of the backward pass, all gradients exist, and the activations of one
/// layer.
inline double activations_beside_gradients(const SiteModel& model, double tokens, double activations,
                                           double gradients) {
  const double unembedding = model.table_elements * (logit_chunks(model, tokens) > 1 ? 6 : 2);
  return std::max(activations + unembedding - gradients, activations / std::max(model.layers, 1.0));
}

/// Memory of one GPU of a pipeline stage, with micro-batches of `micro_batch_sequences` sequences. If this
/// number is 0, activations are not counted.
MemoryBytes memory_of_stage(const SiteModel& model, const SiteLoad& load, int stage,
                            double micro_batch_sequences);

/// Memory of a site: sum over its GPUs.
MemoryBytes memory_of_site(const SiteModel& model, const SiteLoad& load);

/// The load of the first or the last site of a pipeline across sites, one of which is the fullest. The first
/// one keeps most activations, the last one has the logits.
inline SiteLoad at_end_of_pipeline(SiteLoad load, bool last) {
  if (last) load.site_stage = load.site_stages - 1.0;
  return load;
}
/// Number of ends to look at: 1 if sites are not pipeline stages.
inline int pipeline_ends(const SiteModel& model) { return model.pipeline_micro_batches > 0 ? 2 : 1; }

/// What decides which of several sites is the fullest one. A GPU of unknown memory counts as less full than
/// any other.
inline double fullness(double needed_bytes, double available_bytes) {
  return available_bytes > 0 ? needed_bytes / available_bytes : needed_bytes * 1e-30;
}

/// Bytes that the fullest GPU of all sites needs, and may need at most (GpuNeed), and its memory; `available`
/// is 0 if it is not given.
struct GpuMemory {
  double needed = 0, available = 0, most = 0;
};
GpuMemory fullest_gpu(const Counts& counts);

/// Memory of the fullest GPU of a site, which is in the pipeline stage that holds most, with the scenario's
/// micro-batch or with the given one.
MemoryBytes memory_per_gpu(const SiteModel& model, const SiteLoad& load);
MemoryBytes memory_per_gpu(const SiteModel& model, const SiteLoad& load, double micro_batch_sequences);
/// Memory of the fullest site.
MemoryBytes memory_per_site(const SiteModel& model, const SiteLoad& load);
/// Host memory of a site in bytes. It is one copy of the outer state if the outer state is on the host
/// (outer_state_on = host), otherwise 0.
double host_bytes_per_site(const SiteModel& model, const SiteLoad& load);

/// Parameters of one replica: all dense parameters, O_e/M of the experts and, without skip-token, O_e/M of
/// the router. O_e is the number of sites that hold each expert, and M is the number of sites. If sites hold
/// unequally many experts, this is the largest replica.
std::int64_t parameters_per_site(const Scenario& scenario);

/// The largest micro-batch with which the fullest GPU stays within its memory; 0 if not even one sequence
/// fits. Empty if the GPU memory is not given or if activations are unknown (opaque models).
std::optional<std::int64_t> largest_micro_batch_sequences(const SiteModel& model, const SiteLoad& load);

/// The report's statement on what the memory figures include.
Provenance memory_provenance(const SiteModel& model, const SiteLoad& load);

}  // namespace fomoe::costmodel
