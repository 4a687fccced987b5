// Computation time of a node for an operation of a plan: from the scenario's profile, given step time or
// assumed device, the site's compute_factor and the random variation of the step.
#pragma once
#include <cstdint>
#include <vector>

#include "costmodel/compute/compute_times.hpp"
#include "costmodel/inputs/at_site.hpp"
#include "costmodel/inputs/scenario.hpp"
#include "costmodel/plan/plan.hpp"

namespace fomoe::costmodel {

class OperationSeconds {
 public:
  /// Throws InputError if the profile does not fit. The scenario must outlive this object.
  OperationSeconds(const Scenario& scenario, const Plan& plan);

  /// Returns the seconds of an operation: work_s (seconds of one unit of the operation's work) · the site's
  /// compute_factor · repeat · share · drawn_step_factor.
  [[nodiscard]] double of(const Compute& compute, NodeId node, std::int64_t round, OpId op) const;
  /// Origin of the step time.
  [[nodiscard]] const std::vector<Provenance>& provenance() const { return times_.front().provenance; }

 private:
  const Scenario& scenario_;
  std::vector<AtSite> at_site_;          // by node, if steps are drawn from the samples of its profile
  std::vector<ComputeTimes> times_;      // by node
  std::vector<double> compute_factors_;  // compute_factor of the node's site, by node; 0: a store
};

}  // namespace fomoe::costmodel
