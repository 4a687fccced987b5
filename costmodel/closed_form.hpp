// Wall-clock by formula: the specification of the simulator for equal sites, fluid links and no latency.
#pragma once
#include <cstdint>
#include <vector>

#include "costmodel/parallelism.hpp"
#include "costmodel/plan.hpp"
#include "costmodel/plan_summary.hpp"
#include "costmodel/run_report.hpp"
#include "costmodel/scenario.hpp"
#include "costmodel/step_seconds.hpp"

namespace fomoe::costmodel {

/// Seconds that one site computes.
struct ComputeTimes {
  double gradients_s = 0;  // forward and backward of the site's whole local batch
  double forward_s = 0;    // of gradients_s
  double optimizer_s = 0;
  double outer_step_s = 0;
  IntraSiteSeconds<double> intra_site;  // part of the first two
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

/// Seconds of one `work` of a site.
double work_s(const ComputeTimes& times, Work work);

/// Sequences of the global batch that a site processes in one step; sites differ by at most one, save where
/// the method trains at the first site alone.
std::int64_t local_batch_sequences(const Scenario& scenario, int site);

/// Of a node that trains on `sequences` in each optimiser step. Throws InputError where the profile does not
/// fit the scenario's model or batch.
ComputeTimes compute_times(const Scenario& scenario, double sequences);

/// T = Σ_steps t_step + Σ_rounds [outer step + Σ_stages max(0, hops·latency + bytes ÷ slowest port − what can
/// hide)].
RunReport closed_form(const Scenario& scenario);

}  // namespace fomoe::costmodel
