// Computation times of a site for each part of an optimiser step.
#pragma once
#include <vector>

#include "costmodel/compute/site_step.hpp"
#include "costmodel/counts/counts.hpp"
#include "costmodel/inputs/scenario.hpp"
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
  SiteStep step;                // what the times follow from
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
