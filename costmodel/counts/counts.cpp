#include "costmodel/counts/counts.hpp"

#include <algorithm>
#include <cmath>

#include "costmodel/counts/memory.hpp"
#include "costmodel/inputs/at_site.hpp"
#include "costmodel/model/flops.hpp"
#include "costmodel/model/local_tokens.hpp"
#include "costmodel/model/parallelism.hpp"
#include "costmodel/model/summary_inputs.hpp"
#include "costmodel/plan/method.hpp"
#include "costmodel/plan/site_shares.hpp"

namespace fomoe::costmodel {

namespace {

/// The sequences of the sites in a step: `few` at a share of them, `many` at the others.
void divide_batch(const Scenario& scenario, int site, bool alike, double mean, SiteCounts& counts) {
  if (scenario.strategy.method->residency == Residency::sharded) {
    counts.few = counts.many = mean;
  } else if (alike) {
    counts.few = std::floor(mean);
    counts.many = std::ceil(mean);
    counts.share_of_few = counts.many - mean;
  } else {
    counts.few = counts.many = static_cast<double>(local_batch_sequences(scenario, site));
  }
  counts.load.sequences = counts.many;
}

}  // namespace

Counts counts_of(const Scenario& scenario) {
  Counts counts;
  counts.method = scenario.strategy.method;
  counts.axes = axes_of(scenario);
  counts.fixed = fixed_of(scenario);
  const ExpertShares shares = expert_shares(scenario);
  const std::vector<double> local_shares = local_token_shares(scenario.strategy, shares);
  counts.alike = !steps_differ(scenario) && !shares.differ() && local_shares.empty();
  counts.flops_per_token = flops_per_token(scenario).total();
  const bool one_site = counts.method->one_site;
  const double training = one_site ? 1.0 : counts.axes.sites;
  counts.mean_sequences = counts.axes.global_batch_sequences / training;
  double fullest = -1;
  const std::size_t sites = counts.alike ? 1 : static_cast<std::size_t>(scenario.sites());
  for (std::size_t i = 0; i < sites; ++i) {
    const AtSite at(scenario, static_cast<int>(i));
    SiteCounts& site = counts.sites.emplace_back();
    site.model = site_model(at);
    const int index = static_cast<int>(i);
    site.used_experts = used_experts(shares, local_shares, index);
    site.dense_elements = counts.fixed.dense_elements;
    site.expert_elements = counts.fixed.expert_elements * shares.held(index);
    site.flops_per_token = flops_per_token(scenario.model, site.used_experts, scenario.strategy.skip_token,
                                           FlopsAccounting::mechanism);
    site.load = site_load(at, index, site.model, counts.fixed, counts.axes);
    if (!local_shares.empty()) site.load.executed_experts = executed_experts(site.model, site.used_experts);
    site.share_of_training = (counts.alike ? training : one_site && i > 0 ? 0.0 : 1.0) / counts.axes.sites;
    divide_batch(scenario, index, counts.alike, counts.mean_sequences, site);
    site.load.gradient_bytes = gradient_bytes(site.model, replica_sequences(site.model, site.load));
    if (site.share_of_training == 0) continue;
    site.need_of_gpu = need_of(site.model, site.load, memory_per_gpu(site.model, site.load));
    site.bytes_per_site = memory_per_site(site.model, site.load).total();
    const double full = fullness(site.need_of_gpu.needed, site.model.gpus.gpu_memory_bytes);
    if (full > fullest) counts.fullest = i;
    fullest = std::max(full, fullest);
  }
  return counts;
}

}  // namespace fomoe::costmodel
