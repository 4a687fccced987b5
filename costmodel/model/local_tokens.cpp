#include "costmodel/model/local_tokens.hpp"

#include <algorithm>

#include "costmodel/plan/placement_affinity.hpp"

namespace fomoe::costmodel {

bool counts_skipped_tokens(const Strategy& strategy, const ExpertShares& shares) {
  return strategy.skip_token && !strategy.routing_counts.empty() &&
         strategy.placement != PlacementKind::random && shares.overlap < shares.sites;
}

bool expert_work_differs(const Strategy& strategy, const ExpertShares& shares) {
  return shares.differ() || counts_skipped_tokens(strategy, shares);
}

std::vector<double> local_token_shares(const Strategy& strategy, const ExpertShares& shares) {
  if (!counts_skipped_tokens(strategy, shares)) return {};
  const RoutingCounts& counts = strategy.routing_counts;
  const Placement placement =
      staying_placement(strategy, counts.layers, counts.experts, counts.sites, shares.overlap);
  const auto sites = static_cast<std::size_t>(counts.sites);
  std::vector<double> all(sites, 0), local(sites, 0);
  for (int layer = 0; layer < counts.layers; ++layer) {
    for (int expert = 0; expert < counts.experts; ++expert) {
      const auto owners = placement.owners(layer, expert);
      for (int site = 0; site < counts.sites; ++site) {
        const auto tokens = static_cast<double>(counts.at(layer, expert, site));
        all[static_cast<std::size_t>(site)] += tokens;
        if (std::binary_search(owners.begin(), owners.end(), site))
          local[static_cast<std::size_t>(site)] += tokens;
      }
    }
  }
  for (std::size_t site = 0; site < sites; ++site)
    local[site] = all[site] > 0 ? local[site] / all[site] : shares.held(static_cast<int>(site));
  return local;
}

double used_experts(const ExpertShares& shares, const std::vector<double>& local_token_shares, int site) {
  if (local_token_shares.empty()) return shares.of_layer(site);
  return static_cast<double>(shares.experts) * local_token_shares[static_cast<std::size_t>(site)];
}

}  // namespace fomoe::costmodel
