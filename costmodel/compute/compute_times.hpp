// Computation times of a site for each part of an optimiser step.
#pragma once
#include <vector>

#include "costmodel/compute/step_seconds.hpp"
#include "costmodel/inputs/scenario.hpp"
#include "costmodel/model/counts.hpp"
#include "costmodel/model/parallelism.hpp"
#include "costmodel/plan/plan.hpp"

namespace fomoe::costmodel {

/// Computation times of one site, in seconds.
struct ComputeTimes {
  double gradients_s = 0;  // forward and backward pass of the site's whole local batch
  double forward_s = 0;    // forward part of gradients_s
  double optimizer_s = 0;
  double outer_step_s = 0;
  IntraSiteSeconds intra_site;  // intra-site communication, included in the times above
  std::vector<Provenance> provenance;
  [[nodiscard]] double backward_s() const { return gradients_s - forward_s; }
  [[nodiscard]] double step_s() const { return gradients_s + optimizer_s; }
  void slow_down(double factor) {
    gradients_s *= factor;
    forward_s *= factor;
    optimizer_s *= factor;
    outer_step_s *= factor;
  }
  [[nodiscard]] StepSeconds parts() const { return {gradients_s, forward_s, optimizer_s}; }
};

/// Whether communication among the GPUs of a site comes on top of the step time. A given step time, an MFU
/// and steps that several GPUs executed together include it.
bool adds_communication(const Scenario& scenario);

/// Whether the step time includes the optimiser: all but that of a kernel efficiency do.
bool includes_optimizer(const Scenario& scenario);

/// Whether the forward pass is executed a second time in addition to the step time, because of activation
/// checkpointing. Timed steps of a run with activation checkpointing include it.
bool repeats_forward(const Scenario& scenario);

/// Share of the forward pass that is executed a second time in each step because of activation checkpointing.
double executed_again(const Scenario& scenario);

/// Executed FLOPs ÷ model FLOPs of a step whose time follows from FLOPs. An MFU counts model FLOPs only.
double executed_per_model_flops(const Scenario& scenario);

/// Number of GPUs among which the optimiser's time of a profile is divided: 1 if several GPUs executed the
/// timed steps together. The sharding of fsdp among all GPUs of a site is not included (sharded_degree).
double optimizer_division(const Scenario& scenario, const SiteModel& model);

/// Shares of the peak rate that the GPUs of a site with `sequences` sequences reach during a step. Empty if
/// the peak is unknown.
struct Efficiency {
  double mfu = 0;  // model FLOPs ÷ (step time · peak)
  /// Executed FLOPs ÷ (time of forward and backward pass without communication · peak). Empty if the time of
  /// the communication is not known, because the step time includes it, or if the timed run checkpointed
  /// selectively, so that the executed FLOPs are not known.
  std::optional<double> kernel_efficiency;
};
std::optional<Efficiency> step_efficiency(const Scenario& scenario, double sequences,
                                          const ComputeTimes& times);

/// Seconds that a site takes for one unit of `work`.
double work_s(const ComputeTimes& times, Work work);

/// Throws InputError if the profile of the scenario's site does not fit its model or batch.
void check_profile(const Scenario& scenario);

/// Computation times of a node that trains on `sequences` sequences in each optimiser step. Throws InputError
/// if the profile does not fit the scenario's model or batch.
ComputeTimes compute_times(const Scenario& scenario, double sequences);
/// The same for the site with this index, with the counts of the whole scenario. `at_site` is the scenario of
/// the site (AtSite).
ComputeTimes compute_times(const Scenario& at_site, const Counts& counts, int site, double sequences);

}  // namespace fomoe::costmodel
