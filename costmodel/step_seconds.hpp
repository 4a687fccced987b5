// Seconds of a site's forward and backward passes in one optimiser step, as formulas of the numeric axes.
#pragma once
#include "costmodel/lanes.hpp"
#include "costmodel/site_gpus.hpp"

namespace fomoe::costmodel {

/// t_comp = F · B_l / (MFU · Φ_peak), with Φ_peak of all GPUs of a site    (FoMoE paper, "Computational
/// Time")
template <class V>
V assumed_gradients_s(const V& flops_per_token, const V& tokens, const V& mfu, const V& peak_flops,
                      const V& gpus_per_site) {
  return flops_per_token * tokens / (mfu * peak_flops * gpus_per_site);
}

/// A profile is of one GPU. A local batch is n accumulated micro-batches of each replica; a last, smaller one
/// costs its share. Tensor and pipeline parallelism are taken to divide a micro-batch's time evenly, so that
/// `sequences` are those of the site ÷ its GPUs.
template <class V>
V profiled_gradients_s(const V& sequences, double micro_batch_sequences, const V& micro_batch_s) {
  return sequences / micro_batch_sequences * micro_batch_s;
}

/// Forward and backward; the forward once more where activations are computed again.
inline double profiled_micro_batch_s(double forward_s, double backward_s, bool activation_checkpointing) {
  return (activation_checkpointing ? 2 : 1) * forward_s + backward_s;
}

/// Into how many parts the optimiser's work is divided.
inline double optimizer_division(const SiteGpus& gpus) {
  return static_cast<double>(gpus.sharded) * gpus.tensor_parallel * gpus.pipeline_parallel;
}

}  // namespace fomoe::costmodel
