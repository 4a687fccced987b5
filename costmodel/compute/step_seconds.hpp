// Seconds of a site's forward and backward passes in one optimiser step, as formulas of the numeric axes.
#pragma once
#include "costmodel/inputs/site_gpus.hpp"
#include "costmodel/inputs/step_profile.hpp"
#include "costmodel/math/lanes.hpp"

namespace fomoe::costmodel {

/// Forward 2, backward 4 FLOPs per parameter and token (Kaplan et al. 2020), where nobody timed them apart.
inline constexpr double kForwardShare = 1.0 / 3;

/// One optimiser step of a site. The backward pass is what `gradients` has beyond `forward`.
template <class V>
struct StepSeconds {
  V gradients_s, forward_s, optimizer_s;
  [[nodiscard]] V step_s() const { return gradients_s + optimizer_s; }
  [[nodiscard]] V backward_s() const { return gradients_s - forward_s; }
};

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

/// Of forward and backward together, with a forward that is computed again in the backward pass. Without
/// measured times: 2 of 6 FLOPs, or of 8.
inline double forward_share(const StepSample& timed, bool activation_checkpointing) {
  return timed.forward_s /
         profiled_micro_batch_s(timed.forward_s, timed.backward_s, activation_checkpointing);
}
inline double forward_share(bool activation_checkpointing) {
  return activation_checkpointing ? kForwardShare / (1 + kForwardShare) : kForwardShare;
}

/// Into how many parts the optimiser's work is divided.
inline double optimizer_division(const SiteGpus& gpus) {
  return static_cast<double>(gpus.sharded) * gpus.tensor_parallel * gpus.pipeline_parallel;
}

}  // namespace fomoe::costmodel
