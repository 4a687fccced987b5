#include "costmodel/plan/site_shares.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "costmodel/plan/method.hpp"

namespace fomoe::costmodel {

int effective_overlap(const Scenario& scenario) {
  return scenario.strategy.method->partial_experts ? scenario.strategy.expert_overlap : scenario.sites();
}

double ExpertShares::of_layer(int site) const {
  if (!differ()) return static_cast<double>(experts * overlap) / sites;
  return static_cast<double>(at(site)) / static_cast<double>(layers);
}

double ExpertShares::held(int site) const {
  if (!differ()) return static_cast<double>(overlap) / sites;
  return static_cast<double>(at(site)) / static_cast<double>(layers * experts);
}

ExpertShares expert_shares(const Scenario& scenario) {
  return {scenario.model.experts, moe_layers(scenario.model), effective_overlap(scenario), scenario.sites()};
}

double most_held_share(double sites, double overlap, double moe_layers, double experts) {
  const double all = moe_layers * experts, of_site = all * overlap / sites;
  return of_site == std::floor(of_site) ? overlap / sites : std::ceil(of_site) / all;
}

std::vector<double> share_limits(const Workload& workload) {
  const std::vector<double>& shares = workload.batch_shares;
  const double all = std::accumulate(shares.begin(), shares.end(), 0.0);
  std::vector<double> limits = {0};
  double sum = 0;
  for (const double share : shares) limits.push_back((sum += share) / all);
  limits.back() = 1;
  return limits;
}

std::int64_t local_batch_sequences(const Scenario& scenario, int site) {
  if (scenario.strategy.method->one_site) return site == 0 ? scenario.workload.global_batch_sequences : 0;
  if (scenario.workload.batch_shares.empty())
    return chunk_elements(scenario.workload.global_batch_sequences, scenario.sites(), site);
  const std::vector<double> limits = share_limits(scenario.workload);
  const auto batch = static_cast<double>(scenario.workload.global_batch_sequences);
  const auto at = static_cast<std::size_t>(site);
  return std::llround(sequences_before(batch, limits[at + 1]) - sequences_before(batch, limits[at]));
}

double sequences_of_work(const Scenario& scenario, int site) {
  if (scenario.strategy.method->residency != Residency::sharded)
    return static_cast<double>(local_batch_sequences(scenario, site));
  return static_cast<double>(scenario.workload.global_batch_sequences) / scenario.sites();
}

std::int64_t optimizer_steps(const Scenario& scenario) {
  const std::int64_t tokens_per_step =
      scenario.workload.global_batch_sequences * scenario.model.sequence_length;
  return (scenario.workload.tokens + tokens_per_step - 1) / tokens_per_step;
}

std::vector<double> next_owner_probabilities(int sites, int owners) {
  std::vector<double> probabilities;
  double probability = (owners - 1.0) / (sites - 1.0);
  for (int gap = 1; gap < sites; ++gap) {
    probabilities.push_back(probability);
    const double others = sites - 1.0 - gap;
    probability = others > 0 ? probability * std::max(0.0, others - (owners - 2.0)) / others : 0;
  }
  return probabilities;
}

}  // namespace fomoe::costmodel
