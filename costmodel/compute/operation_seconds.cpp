#include "costmodel/compute/operation_seconds.hpp"

#include "costmodel/compute/compute_times.hpp"
#include "costmodel/compute/step_variation.hpp"

namespace fomoe::costmodel {

OperationSeconds::OperationSeconds(const Scenario& scenario, const Plan& plan) : scenario_(scenario) {
  for (const Node& node : plan.nodes) {
    times_.push_back(compute_times(scenario, node.sequences));
    compute_factors_.push_back(scenario.platform.sites[static_cast<std::size_t>(node.site)].compute_factor);
  }
}

double OperationSeconds::of(const Compute& compute, NodeId node, std::int64_t round, OpId op) const {
  const auto n = static_cast<std::size_t>(node);
  const double drawn =
      scenario_.variation.varies()
          ? drawn_step_factor(scenario_, static_cast<std::uint64_t>(node), static_cast<std::uint64_t>(round),
                              static_cast<std::uint64_t>(op), compute.repeat)
          : 1;
  return work_s(times_[n], compute.work) * compute_factors_[n] * static_cast<double>(compute.repeat) *
         compute.share * drawn;
}

}  // namespace fomoe::costmodel
