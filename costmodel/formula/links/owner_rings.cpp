#include "costmodel/formula/links/owner_rings.hpp"

#include <algorithm>
#include <cmath>

#include "costmodel/formula/links/shared_port.hpp"
#include "costmodel/plan/site_shares.hpp"

namespace fomoe::costmodel {

namespace {

double bytes_of_all(const Stage& stage) { return (stage.bytes - stage.beside.bytes) / stage.latency_hops; }
double bytes_of_owners(const Stage& stage) { return stage.beside.bytes / stage.beside.hops; }

double step_of_all_s(const Stage& stage, const Links& links) {
  return links.latency_s + bytes_of_all(stage) / std::min(links.port_bytes_per_s(), links.path_bytes_per_s);
}

double step_of_owners_s(const Stage& stage, const Links& links, double share) {
  const double bytes = bytes_of_owners(stage);
  return links.latency_s + std::max(bytes / links.port_bytes_per_s(), bytes * share / links.path_bytes_per_s);
}

double bytes_per_s_of(const Stage& stage, const Links& links, double pair_bytes) {
  return stage.bytes / std::max(stage.bytes / links.port_bytes_per_s(), pair_bytes / links.path_bytes_per_s);
}

/// Numbers of rings that send from one site to another, as shares of those of the sender.
class HopCounts {
 public:
  explicit HopCounts(int sites) : sites_(sites), counts_(static_cast<std::size_t>(sites * sites), 0.0) {}

  void add(const std::vector<NodeId>& ring) {
    for (std::size_t i = 0; i < ring.size(); ++i) at(ring[i], ring[(i + 1) % ring.size()]) += 1;
  }
  double& at(int from, int to) { return counts_[static_cast<std::size_t>(from * sites_ + to)]; }

  std::vector<OwnerHop> shares(int ring) {
    std::vector<OwnerHop> hops;
    for (int from = 0; from < sites_; ++from) {
      double all = 0;
      for (int to = 0; to < sites_; ++to) all += at(from, to);
      for (int to = 0; to < sites_; ++to)
        if (at(from, to) > 0) hops.push_back({from, to, at(from, to) / all, ring});
    }
    return hops;
  }

 private:
  int sites_;
  std::vector<double> counts_;
};

/// Every set of owners is equally likely.
std::vector<OwnerHop> drawn_hops(int sites, int owners, const std::vector<NodeId>& ring_of_all,
                                 RingOrders& orders) {
  constexpr double kMostSets = 300;
  HopCounts counts(sites);
  double sets = 1;
  for (int i = 0; i < owners; ++i) sets = sets * (sites - i) / (i + 1);
  if (!orders.active() || sets > kMostSets) {
    // Assumed: a ring goes through its owners in the order of the ring of all sites.
    const auto at = [&](int i) { return ring_of_all[static_cast<std::size_t>(i % sites)]; };
    const std::vector<double> probabilities = next_owner_probabilities(sites, owners);
    for (int from = 0; from < sites; ++from)
      for (int gap = 1; gap < sites; ++gap)
        counts.at(at(from), at(from + gap)) = probabilities[static_cast<std::size_t>(gap - 1)];
    return counts.shares(0);
  }
  std::vector<bool> owns(static_cast<std::size_t>(sites), false);
  std::fill(owns.begin(), owns.begin() + owners, true);
  do {
    std::vector<NodeId> ring;
    for (int site = 0; site < sites; ++site)
      if (owns[static_cast<std::size_t>(site)]) ring.push_back(site);
    orders.apply(ring);
    counts.add(ring);
  } while (std::prev_permutation(owns.begin(), owns.end()));
  return counts.shares(0);
}

}  // namespace

std::vector<OwnerHop> owner_hops(const Strategy& strategy, int owners, const std::vector<NodeId>& ring_of_all,
                                 RingOrders& orders) {
  const int sites = static_cast<int>(ring_of_all.size());
  if (strategy.collective != Collective::ring || owners < 2 || owners >= sites) return {};
  if (strategy.placement == PlacementKind::random || strategy.placement == PlacementKind::affinity)
    return drawn_hops(sites, owners, ring_of_all, orders);
  // Consecutive sites: blocks of them, which do not wait for each other, or as many sets as sites.
  const bool blocks = strategy.placement == PlacementKind::fixed && !leaves_remainder(sites, owners);
  std::vector<OwnerHop> hops;
  HopCounts counts(sites);
  for (int first = 0; first < sites; first += blocks ? owners : 1) {
    std::vector<NodeId> ring;
    for (int i = 0; i < owners; ++i) ring.push_back((first + i) % sites);
    std::sort(ring.begin(), ring.end());
    orders.apply(ring);
    if (!blocks) {
      counts.add(ring);
      continue;
    }
    for (std::size_t i = 0; i < ring.size(); ++i)
      hops.push_back({ring[i], ring[(i + 1) % ring.size()], 1, first / owners});
  }
  return blocks ? hops : counts.shares(0);
}

RingSteps ring_steps(const Stage& stage, const Links& links) {
  return {step_of_all_s(stage, links), step_of_owners_s(stage, links, stage.beside.largest_share)};
}

RingSteps ring_steps(const Stage& stage, const LinkSets& sets) {
  if (sets.owners.empty()) return ring_steps(stage, sets.all);
  RingSteps steps;
  for (const Links& hop : sets.ring) steps.of_all = std::max(steps.of_all, step_of_all_s(stage, hop));
  for (const OwnerLinks& hop : sets.owners)
    steps.of_owners = std::max(steps.of_owners, step_of_owners_s(stage, hop.links, hop.share));
  return steps;
}

double slowest_bytes_per_s(const Stage& stage, const LinkSets& sets) {
  double slowest = platforms::kUnlimited;
  for (const Links& hop : sets.ring)
    slowest = std::min(slowest, bytes_per_s_of(stage, hop, stage.pair_bytes));
  for (const OwnerLinks& hop : sets.owners)
    slowest = std::min(slowest, bytes_per_s_of(stage, hop.links, hop.share * stage.beside.bytes));
  return slowest;
}

double side_by_side_s(const Stage& stage, const RingSteps& steps, double bytes_per_s) {
  const double all = bytes_of_all(stage), owners = bytes_of_owners(stage);
  const auto wait_s = [&](double step_s, double bytes) {
    return std::max(0.0, step_s - bytes / bytes_per_s);
  };
  if (bytes_per_s == platforms::kUnlimited)
    return std::max(stage.latency_hops * steps.of_all, stage.beside.hops * steps.of_owners);
  return both_end_s({stage.latency_hops, all, 1, wait_s(steps.of_all, all)},
                    {stage.beside.hops, owners, stage.beside.flows, wait_s(steps.of_owners, owners)},
                    bytes_per_s);
}

}  // namespace fomoe::costmodel
