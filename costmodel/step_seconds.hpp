// Seconds of a site's forward and backward passes in one optimiser step, as formulas of the numeric axes.
#pragma once
#include "costmodel/lanes.hpp"

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

/// A local batch is n accumulated micro-batches; a last, smaller one costs its share.
template <class V>
V profiled_gradients_s(const V& sequences, double micro_batch_sequences, const V& micro_batch_s) {
  return sequences / micro_batch_sequences * micro_batch_s;
}

}  // namespace fomoe::costmodel
