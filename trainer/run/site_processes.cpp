#include "trainer/run/site_processes.hpp"

#include <variant>

#include "costmodel/inputs/at_site.hpp"
#include "platforms/support/input_error.hpp"

namespace fomoe::trainer {

std::vector<int> processes_of_sites(const costmodel::Scenario& scenario, bool paced) {
  std::vector<int> counts;
  for (int site = 0; site < scenario.sites(); ++site) {
    const costmodel::SiteGpus& gpus = costmodel::gpus_of_site(scenario, site);
    const bool whole_model = gpus.gpus_per_replica() * gpus.expert_parallel == 1;
    const bool shards = gpus.sharded == 1 || (gpus.sharded == gpus.count && gpus.zero_stage == 1);
    if (!paced && !shards) {
      throw UsageError("compute.sharded: got " + std::to_string(gpus.sharded) + " of " +
                       std::to_string(gpus.count) +
                       " GPUs with zero_stage = " + std::to_string(gpus.zero_stage) +
                       "; expected 1, or all GPUs of the site with zero_stage = 1, since fomoe-train shards "
                       "only the state of the optimiser; for example --set compute.zero_stage=1");
    }
    if (!paced && !whole_model) {
      throw UsageError(
          "compute.gpus_per_site: got " + std::to_string(gpus.count) +
          " GPUs that divide the model (tensor_parallel, context_parallel, expert_parallel or "
          "pipeline_parallel); "
          "expected data parallelism alone, since fomoe-train keeps the whole model of a site on each of its "
          "GPUs; for example --set compute.tensor_parallel=1");
    }
    counts.push_back(paced ? 1 : gpus.count);
  }
  return counts;
}

std::vector<std::string> site_names(const costmodel::Scenario& scenario) {
  std::vector<std::string> names;
  for (const platforms::Site& site : scenario.platform.sites) names.push_back(site.name);
  return names;
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

namespace {

// Sites exchange whole tensors, and a process has a part of the rows of the moments.
void check_sharded(const costmodel::Plan& plan) {
  std::vector<std::int64_t> rounds = {plan.rounds - 1};
  for (const costmodel::RoundClass& kind : plan.classes) rounds.push_back(kind.round_at(0));
  for (const std::int64_t round : rounds) {
    for (const costmodel::Op& op : plan.round(round).ops) {
      const auto* transfer = std::get_if<costmodel::Transfer>(&op.what);
      if (transfer == nullptr) continue;
      for (const costmodel::Exchange& exchange : transfer->exchanges) {
        for (const costmodel::Payload& payload : exchange.payloads) {
          if (payload.content != costmodel::Content::moment1 &&
              payload.content != costmodel::Content::moment2 &&
              payload.traffic != costmodel::TrafficClass::migration)
            continue;
          throw UsageError(
              "compute.sharded: got a sharded state of the optimiser, and a plan in which sites exchange it "
              "or move experts (" +
              op.name +
              "); expected sharded = 1, or a method that exchanges neither; for example --set "
              "compute.sharded=1");
        }
      }
    }
  }
}

}  // namespace

void check_parts(const costmodel::Scenario& scenario, const costmodel::Plan& plan,
                 const std::vector<int>& counts) {
  for (const costmodel::Node& node : plan.nodes) {
    if (node.kind != costmodel::NodeKind::worker) continue;
    const int processes = counts[static_cast<std::size_t>(node.site)];
    if (node.sequences >= processes) continue;
    throw UsageError("compute.gpus_per_site: got " + std::to_string(processes) + " processes for " +
                     std::to_string(static_cast<int>(node.sequences)) + " sequences of " +
                     scenario.platform.sites[static_cast<std::size_t>(node.site)].name +
                     " in each step; expected at least one sequence for each; for example --set "
                     "workload.global_batch_sequences=" +
                     std::to_string(processes * scenario.sites()));
  }
  for (int site = 0; site < scenario.sites(); ++site) {
    if (costmodel::gpus_of_site(scenario, site).sharded > 1) check_sharded(plan);
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

void check_world(int started, int processes, int sites) {
  if (started == processes) return;
  throw UsageError("WORLD_SIZE: got " + std::to_string(started) +
                   " processes; expected one process for each GPU of the scenario's " +
                   std::to_string(sites) + " sites, which is " + std::to_string(processes) +
                   "; for example fomoe-train run S.toml --local");
}

}  // namespace fomoe::trainer
