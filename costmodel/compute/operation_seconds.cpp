#include "costmodel/compute/operation_seconds.hpp"

#include "costmodel/compute/compute_times.hpp"
#include "costmodel/compute/step_variation.hpp"

namespace fomoe::costmodel {

OperationSeconds::OperationSeconds(const Scenario& scenario, const Plan& plan) : scenario_(scenario) {
  const Counts counts = counts_of(scenario);
  for (const Node& node : plan.nodes) {
    // What an aggregator beside a store computes counts as no time.
    const bool store = node.kind == NodeKind::store;
    const int site = store ? 0 : node.site;
    const AtSite at(scenario, site);
    times_.push_back(compute_times(at, counts, site, node.sequences));
    if (scenario.variation.from_samples) at_site_.emplace_back(scenario, site);
    compute_factors_.push_back(
        store ? 0 : scenario.platform.sites[static_cast<std::size_t>(site)].compute_factor);
  }
}

double OperationSeconds::of(const Compute& compute, NodeId node, std::int64_t round, OpId op) const {
  const auto n = static_cast<std::size_t>(node);
  const Scenario& scenario = at_site_.empty() ? scenario_ : at_site_[n].scenario();
  const double drawn =
      scenario.variation.varies()
          ? drawn_step_factor(scenario, static_cast<std::uint64_t>(node), static_cast<std::uint64_t>(round),
                              static_cast<std::uint64_t>(op), compute.repeat)
          : 1;
  return work_s(times_[n], compute.work) * compute_factors_[n] * static_cast<double>(compute.repeat) *
         compute.share * drawn;
}

}  // namespace fomoe::costmodel
