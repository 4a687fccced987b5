#include "trainer/run/site_processes.hpp"

#include <variant>

#include "costmodel/inputs/at_site.hpp"
#include "platforms/support/input_error.hpp"

namespace fomoe::trainer {

std::vector<int> processes_of_sites(const costmodel::Scenario& scenario, bool paced) {
  std::vector<int> counts;
  for (int site = 0; site < scenario.sites(); ++site) {
    const costmodel::SiteGpus& gpus = costmodel::gpus_of_site(scenario, site);
    if (!paced && gpus.data_parallel() != gpus.count) {
      throw UsageError(
          "compute.gpus_per_site: got " + std::to_string(gpus.count) +
          " GPUs that divide the model (sharded, tensor_parallel, expert_parallel or pipeline_parallel); "
          "expected data parallelism alone, since fomoe-train keeps the whole model of a site on each of its "
          "GPUs; for example --set compute.tensor_parallel=1");
    }
    counts.push_back(paced ? 1 : gpus.count);
  }
  return counts;
}

std::vector<std::string> process_names(const costmodel::Scenario& scenario, const std::vector<int>& counts) {
  std::vector<std::string> names;
  for (std::size_t site = 0; site < counts.size(); ++site) {
    for (int rank = 0; rank < counts[site]; ++rank) {
      std::string name = scenario.platform.sites[site].name;
      if (counts[site] > 1)
        name += ", process " + std::to_string(rank + 1) + " of " + std::to_string(counts[site]);
      names.push_back(std::move(name));
    }
  }
  return names;
}

void check_parts(const costmodel::Scenario& scenario, const costmodel::Plan& plan,
                 const std::vector<int>& counts) {
  for (const costmodel::Node& node : plan.nodes) {
    const int processes = counts[static_cast<std::size_t>(node.site)];
    if (node.kind != costmodel::NodeKind::worker || node.sequences >= processes) continue;
    throw UsageError("compute.gpus_per_site: got " + std::to_string(processes) + " processes for " +
                     std::to_string(static_cast<int>(node.sequences)) + " sequences of " +
                     scenario.platform.sites[static_cast<std::size_t>(node.site)].name +
                     " in each step; expected at least one sequence for each; for example --set "
                     "workload.global_batch_sequences=" +
                     std::to_string(processes * scenario.sites()));
  }
  for (const costmodel::Op& op : plan.round(0).ops) {
    const auto* work = std::get_if<costmodel::Compute>(&op.what);
    if (work == nullptr ||
        (work->work != costmodel::Work::forward && work->work != costmodel::Work::backward))
      continue;
    throw UsageError(
        "compute.gpus_per_site: got several processes in a site, and a plan that sends gradients during the "
        "backward pass; expected one process in each site, or gradients that are sent after it; for example "
        "--set strategy.fragments=1");
  }
}

}  // namespace fomoe::trainer
