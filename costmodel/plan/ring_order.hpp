// Search for the order in which a ring visits its nodes.
#pragma once
#include <vector>

#include "costmodel/plan/plan.hpp"

namespace fomoe::costmodel {

/// The most nodes for which best_ring() is exact.
inline constexpr std::size_t kExactRingNodes = 16;

/// Seconds that each hop of a ring takes; row = sender.
struct HopTimes {
  int nodes = 0;
  std::vector<double> seconds;
  [[nodiscard]] double at(int from, int to) const {
    return seconds[static_cast<std::size_t>(from) * static_cast<std::size_t>(nodes) +
                   static_cast<std::size_t>(to)];
  }
  [[nodiscard]] bool all_equal() const;
};

double slowest_hop_s(const HopTimes& times, const std::vector<NodeId>& ring);

/// The order of the nodes with the fastest slowest hop, or the given order if no other is better. Every node
/// of a stepwise ring sends in every step, so a ring of n nodes takes 2(n−1) times its slowest hop if nothing
/// else uses the links. The result is exact for up to 16 nodes (dynamic programming over sets of visited
/// nodes). For more nodes a local search removes the slowest hop repeatedly (or-3opt moves); its result is
/// never worse than the given order.
std::vector<NodeId> best_ring(const HopTimes& times, const std::vector<NodeId>& given);

}  // namespace fomoe::costmodel
