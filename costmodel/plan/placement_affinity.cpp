#include "costmodel/plan/placement_affinity.hpp"

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "costmodel/plan/site_shares.hpp"

namespace fomoe::costmodel {

namespace {

constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max() / 4;

// The transportation problem of one layer. `loss[e][w]` is the negative of what the objective saves if worker
// w holds expert e.
class Layer {
 public:
  Layer(int experts, int workers, std::vector<std::int64_t> capacity, std::vector<std::int64_t> loss)
      : experts_(experts),
        workers_(workers),
        capacity_(std::move(capacity)),
        loss_(std::move(loss)),
        holds_(loss_.size(), 0),
        held_(static_cast<std::size_t>(workers), 0) {}

  [[nodiscard]] bool holds(int expert, int worker) const { return holds_[index(expert, worker)] != 0; }

  // Gives the expert one more owner at the least added cost. This may need a chain of moves: the new owner
  // passes another expert on to a second worker, the second worker to a third, and so on to a worker with
  // room. The cheapest chain is a shortest path over the workers. Because every chain is a cheapest chain, no
  // cycle of moves lowers the cost. The assignment therefore remains optimal for the owners assigned so far
  // (successive shortest paths, Ford and Fulkerson).
  void add_owner(int expert) {
    std::vector<std::int64_t> cost(static_cast<std::size_t>(workers_), kNever);
    std::vector<int> from(static_cast<std::size_t>(workers_), -1),
        moved(static_cast<std::size_t>(workers_), -1);
    for (int w = 0; w < workers_; ++w) {
      if (!holds(expert, w)) cost[static_cast<std::size_t>(w)] = loss_[index(expert, w)];
    }
    std::vector<std::int64_t> move_cost;
    std::vector<int> move_expert;
    cheapest_moves(move_cost, move_expert);
    for (bool changed = true; changed;) {  // Bellman and Ford: at most M − 1 passes
      changed = false;
      for (int a = 0; a < workers_; ++a) {
        if (cost[static_cast<std::size_t>(a)] == kNever) continue;
        for (int b = 0; b < workers_; ++b) {
          const auto edge = static_cast<std::size_t>(a * workers_ + b);
          if (move_cost[edge] == kNever) continue;
          const std::int64_t through = cost[static_cast<std::size_t>(a)] + move_cost[edge];
          if (through >= cost[static_cast<std::size_t>(b)]) continue;
          cost[static_cast<std::size_t>(b)] = through;
          from[static_cast<std::size_t>(b)] = a;
          moved[static_cast<std::size_t>(b)] = move_expert[edge];
          changed = true;
        }
      }
    }
    int last = -1;
    for (int w = 0; w < workers_; ++w) {
      const auto at = static_cast<std::size_t>(w);
      if (held_[at] == capacity_[at] || cost[at] == kNever) continue;
      if (last < 0 || cost[static_cast<std::size_t>(w)] < cost[static_cast<std::size_t>(last)]) last = w;
    }
    ++held_[static_cast<std::size_t>(last)];
    int w = last;
    for (; from[static_cast<std::size_t>(w)] >= 0; w = from[static_cast<std::size_t>(w)]) {
      holds_[index(moved[static_cast<std::size_t>(w)], w)] = 1;
      holds_[index(moved[static_cast<std::size_t>(w)], from[static_cast<std::size_t>(w)])] = 0;
    }
    holds_[index(expert, w)] = 1;
  }

 private:
  [[nodiscard]] std::size_t index(int expert, int worker) const {
    return static_cast<std::size_t>(expert) * static_cast<std::size_t>(workers_) +
           static_cast<std::size_t>(worker);
  }

  // Finds, for every pair (a, b) of workers, the expert that is cheapest to move from a to b.
  void cheapest_moves(std::vector<std::int64_t>& cost, std::vector<int>& expert) const {
    const auto pairs = static_cast<std::size_t>(workers_) * static_cast<std::size_t>(workers_);
    cost.assign(pairs, kNever);
    expert.assign(pairs, -1);
    for (int e = 0; e < experts_; ++e) {
      for (int a = 0; a < workers_; ++a) {
        if (!holds(e, a)) continue;
        for (int b = 0; b < workers_; ++b) {
          if (holds(e, b)) continue;
          const auto edge = static_cast<std::size_t>(a * workers_ + b);
          const std::int64_t change = loss_[index(e, b)] - loss_[index(e, a)];
          if (change >= cost[edge]) continue;
          cost[edge] = change;
          expert[edge] = e;
        }
      }
    }
  }

  int experts_, workers_;
  std::vector<std::int64_t> capacity_;  // [worker]: experts that it holds in the end
  std::vector<std::int64_t> loss_;
  std::vector<char> holds_;
  std::vector<std::int64_t> held_;
};

bool owns(const Placement& placement, int layer, int expert, int worker) {
  const auto owners = placement.owners(layer, expert);
  return std::binary_search(owners.begin(), owners.end(), worker);
}

}  // namespace

Placement affinity_placement(const RoutingCounts& counts, int overlap, const Placement* previous,
                             std::int64_t migration_cost) {
  Placement placement(counts.layers, counts.experts, counts.sites, overlap);
  for (int l = 0; l < counts.layers; ++l) {
    std::vector<std::int64_t> loss;
    for (int e = 0; e < counts.experts; ++e) {
      for (int w = 0; w < counts.sites; ++w) {
        const bool stays = previous != nullptr && owns(*previous, l, e, w);
        loss.push_back(-counts.at(l, e, w) - (stays ? migration_cost : 0));
      }
    }
    std::vector<std::int64_t> capacity;
    for (int w = 0; w < counts.sites; ++w)
      capacity.push_back(experts_at(counts.experts, overlap, counts.sites, l, w));
    Layer layer(counts.experts, counts.sites, std::move(capacity), std::move(loss));
    for (int slot = 0; slot < overlap; ++slot) {
      for (int e = 0; e < counts.experts; ++e) layer.add_owner(e);
    }
    for (int e = 0; e < counts.experts; ++e) {
      auto owner = placement.mutable_owners(l, e).begin();
      for (int w = 0; w < counts.sites; ++w) {
        if (layer.holds(e, w)) *owner++ = w;
      }
    }
  }
  return placement;
}

Placement staying_placement(const Strategy& strategy, int layers, int experts, int sites, int overlap) {
  if (strategy.placement == PlacementKind::affinity)
    return affinity_placement(strategy.routing_counts, overlap);
  return strategy.placement == PlacementKind::rotated ? rotated_placement(layers, experts, sites, overlap)
                                                      : fixed_placement(layers, experts, sites, overlap);
}

double skipped_share(const RoutingCounts& counts, const Placement& placement) {
  double routed = 0, skipped = 0;
  for (int l = 0; l < counts.layers; ++l) {
    for (int e = 0; e < counts.experts; ++e) {
      for (int w = 0; w < counts.sites; ++w) {
        const auto count = static_cast<double>(counts.at(l, e, w));
        routed += count;
        if (!owns(placement, l, e, w)) skipped += count;
      }
    }
  }
  return routed > 0 ? skipped / routed : 0;
}

}  // namespace fomoe::costmodel
