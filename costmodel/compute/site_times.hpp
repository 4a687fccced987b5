// Step times of each site of a scenario, whose GPUs and parts of the batch may differ.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "costmodel/compute/compute_times.hpp"
#include "costmodel/inputs/scenario.hpp"
#include "costmodel/report/run_report.hpp"

namespace fomoe::costmodel {

/// Computation times of each site with its own GPUs and its part of the batch; of one sequence for a site
/// that does not train.
std::vector<ComputeTimes> site_times(const Scenario& scenario, const Counts& counts);
/// The same for one site.
ComputeTimes site_compute_times(const Scenario& scenario, int site);

/// The origins of the step times. An origin that does not hold for all sites has the names of its sites.
/// `times` are those of site_times(), here and below.
std::vector<Provenance> compute_provenance(const Scenario& scenario, const std::vector<ComputeTimes>& times);

/// Peak FLOP/s of all GPUs of the sites that train; 0 if the peak of one of them is unknown.
double training_peak_flops(const Scenario& scenario);

/// Shares of the peak rate of all training sites: model FLOPs of all sites ÷ (sum over the sites of step time
/// · peak), and the same for kernel efficiency. Empty if the peak of a site is unknown.
std::optional<RunEfficiency> run_efficiency(const Scenario& scenario, const std::vector<ComputeTimes>& times);

/// Whether steps_differ(), sites hold unequally many experts, or have unequal parts of a batch that is no
/// multiple of their number.
bool step_times_differ(const Scenario& scenario);

/// Says which sites have the longest and the shortest steps; empty if they differ by less than 5 %.
std::string unequal_steps(const Scenario& scenario, const std::vector<ComputeTimes>& times);

/// Relative parts of the batch with which the forward and backward passes of all sites take equally long. A
/// site's part is proportional to its sequences per second in an equal part of the batch. Throws InputError
/// for a given step time, which does not depend on the batch.
std::vector<double> balanced_shares(const Scenario& scenario);

}  // namespace fomoe::costmodel
