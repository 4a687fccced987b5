// Seconds of a site's forward and backward passes in one optimiser step, as formulas of the numeric axes.
#pragma once
#include "costmodel/inputs/site_gpus.hpp"
#include "costmodel/inputs/step_profile.hpp"
#include "costmodel/model/site_model.hpp"

namespace fomoe::costmodel {

/// Share of the forward pass in a step whose forward and backward passes were not timed separately. The
/// forward pass has 2 FLOPs per parameter and token, the backward pass has 4 (Kaplan et al. 2020).
inline constexpr double kForwardShare = 1.0 / 3;

/// Computation times of one optimiser step of a site. `gradients_s` − `forward_s` is the time of the backward
/// pass.
struct StepSeconds {
  double gradients_s, forward_s, optimizer_s;
  double equal_part = 1;  // see equal_part(); for methods whose sites compute each other's tokens
  [[nodiscard]] double step_s() const { return gradients_s + optimizer_s; }
  [[nodiscard]] double backward_s() const { return gradients_s - forward_s; }
};

/// Time of the forward and backward passes of one optimiser step: t_comp = F · B_l / (η · Φ_peak). F is the
/// number of FLOPs per token, and B_l is the number of tokens per site and step. η is the achieved share of
/// the peak, and Φ_peak is the peak FLOP/s of all GPUs of a site (FoMoE paper, "Computational Time", where η
/// is the MFU). See AssumedDevice for the FLOPs that F has with each kind of η.
inline double assumed_gradients_s(double flops_per_token, double tokens, double share_of_peak,
                                  double peak_flops, double gpus_per_site) {
  return flops_per_token * tokens / (share_of_peak * peak_flops * gpus_per_site);
}

/// Time of forward and backward passes from the profile of one GPU. Each replica processes its part of the
/// local batch as a sequence of micro-batches. A smaller last micro-batch takes a proportional part of the
/// time. Tensor and pipeline parallelism are assumed to divide a micro-batch's time evenly. `sequences` is
/// therefore the number of the site's sequences ÷ the number of its GPUs. `timed_sequences` is the same of
/// the timed steps: a micro-batch, or the whole step of a log, which takes `timed_s`. With more than one
/// micro-batch, the gradients of each are added to those of the step, which takes `accumulation_s`.
inline double profiled_gradients_s(double sequences, double timed_sequences, double timed_s,
                                   double accumulation_s) {
  const double times = sequences / timed_sequences;
  return times * (timed_s + (times > 1 ? accumulation_s : 0));
}

/// Time of the forward and backward passes of one micro-batch. `repeated` is the share of the forward pass
/// that runs a second time because of activation checkpointing.
inline double profiled_micro_batch_s(double forward_s, double backward_s, double repeated) {
  return (1 + repeated) * forward_s + backward_s;
}

/// Share of the forward pass in the time of forward and backward pass together. What is repeated counts as
/// part of the backward pass.
inline double forward_share(const StepSample& timed, double repeated) {
  return timed.forward_s / profiled_micro_batch_s(timed.forward_s, timed.backward_s, repeated);
}
/// Without measured times, the share is 2 of 6 FLOPs, or of those that are executed.
inline double forward_share(double repeated) { return kForwardShare / (1.0 + kForwardShare * repeated); }

}  // namespace fomoe::costmodel
