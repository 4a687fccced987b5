// How many processes train each site: one for each of its GPUs (trainer/comm/site_ranks.hpp).
#pragma once
#include <string>
#include <vector>

#include "costmodel/inputs/scenario.hpp"
#include "costmodel/plan/plan.hpp"

namespace fomoe::trainer {

/// Processes of each site. One for each site if steps are paced, since nothing is computed then. Throws
/// UsageError if a site divides the model among its GPUs: fomoe-train divides the batch only.
std::vector<int> processes_of_sites(const costmodel::Scenario& scenario, bool paced);

std::vector<std::string> site_names(const costmodel::Scenario& scenario);

/// The names of all processes in errors, by rank: the site's name, with a number if the site has several.
std::vector<std::string> process_names(const costmodel::Scenario& scenario, const std::vector<int>& counts);

/// Throws UsageError if another number of processes was started (WORLD_SIZE) than the sites have together.
void check_world(int started, int processes, int sites);

/// Throws UsageError if a process would have no sequence, or if the plan sends gradients while a backward
/// pass continues, which is not supported for sites with several processes.
void check_parts(const costmodel::Scenario& scenario, const costmodel::Plan& plan,
                 const std::vector<int>& counts);

}  // namespace fomoe::trainer
