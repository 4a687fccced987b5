// Computation times of a site for each part of an optimiser step.
#pragma once
#include <vector>

#include "costmodel/compute/step_seconds.hpp"
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
  IntraSiteSeconds<double> intra_site;  // intra-site communication, included in the times above
  std::vector<Provenance> provenance;
  [[nodiscard]] double backward_s() const { return gradients_s - forward_s; }
  [[nodiscard]] double step_s() const { return gradients_s + optimizer_s; }
  void slow_down(double factor) {
    gradients_s *= factor;
    forward_s *= factor;
    optimizer_s *= factor;
    outer_step_s *= factor;
  }
  [[nodiscard]] StepSeconds<double> parts() const { return {gradients_s, forward_s, optimizer_s}; }
};

/// Seconds that a site takes for one unit of `work`.
double work_s(const ComputeTimes& times, Work work);

/// Computation times of a node that trains on `sequences` sequences in each optimiser step. Throws InputError
/// if the profile does not fit the scenario's model or batch.
ComputeTimes compute_times(const Scenario& scenario, double sequences);

}  // namespace fomoe::costmodel
