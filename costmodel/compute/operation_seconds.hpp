// How long a node computes for an operation of a plan, as the scenario says: of its profile, given step time
// or assumed device, its site's compute_factor and what is drawn for the step.
#pragma once
#include <cstdint>
#include <vector>

#include "costmodel/compute/compute_times.hpp"
#include "costmodel/inputs/scenario.hpp"
#include "costmodel/plan/plan.hpp"

namespace fomoe::costmodel {

class OperationSeconds {
 public:
  /// Throws InputError where the profile does not fit. The scenario must outlive it.
  OperationSeconds(const Scenario& scenario, const Plan& plan);

  /// work_s · the site's compute_factor · repeat · share · drawn factor
  [[nodiscard]] double of(const Compute& compute, NodeId node, std::int64_t round, OpId op) const;
  /// Where the step time comes from.
  [[nodiscard]] const std::vector<Provenance>& provenance() const { return times_.front().provenance; }

 private:
  const Scenario& scenario_;
  std::vector<ComputeTimes> times_;      // by node
  std::vector<double> compute_factors_;  // by node, of its site
};

}  // namespace fomoe::costmodel
