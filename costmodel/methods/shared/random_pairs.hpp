// Random pairs of sites, as gossip methods draw them.
#pragma once
#include <cstdint>
#include <utility>
#include <vector>

#include "costmodel/plan/plan.hpp"

namespace fomoe::costmodel {

/// The pairs of a round: min(peers, M−1) disjoint matchings of a random order of the M sites, so that no pair
/// occurs twice. In each matching, ⌊M/2⌋ pairs are formed; if M is odd, one site has no partner. The draw
/// depends only on the scenario's seed and the round.
std::vector<std::pair<NodeId, NodeId>> random_pairs(const Scenario& scenario, std::int64_t round, int peers);

/// The two sites of each pair send `content` of the whole model to each other.
Transfer exchange_in_pairs(const Scenario& scenario, const std::vector<TensorGroup>& groups,
                           const std::vector<std::pair<NodeId, NodeId>>& pairs, Content content);

/// Copies of a payload that a site sends if all pairs exchange it, as the mean over sites: peers · 2⌊M/2⌋/M.
inline double copies_in_pairs(double sites, double peers) {
  return std::min(peers, sites - 1.0) * 2.0 * std::floor(sites / 2.0) / sites;
}

}  // namespace fomoe::costmodel
