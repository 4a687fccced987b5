// Search for the order in which a ring visits its nodes.
#pragma once
#include <map>
#include <vector>

#include "costmodel/plan/plan.hpp"

namespace fomoe::costmodel {

/// Seconds of one ring step over each hop; row = sender.
struct HopTimes {
  int nodes = 0;
  std::vector<double> seconds;
  [[nodiscard]] double at(int from, int to) const {
    return seconds[static_cast<std::size_t>(from) * static_cast<std::size_t>(nodes) +
                   static_cast<std::size_t>(to)];
  }
};

/// Time of each hop on the effective platform: latency + chunk ÷ min(uplink, path, downlink, cap of a flow).
/// The chunk is 1/M of the whole model on the wire. If the model is sent in `transfers` rings one after
/// another, each of them pays the latency, and the result is their sum.
HopTimes hop_times(const Scenario& scenario, double transfers = 1);

double slowest_hop_s(const HopTimes& times, const std::vector<NodeId>& ring);

/// The order of the nodes with the fastest slowest hop, or the given order if no other is better. Every node
/// of a stepwise ring sends in every step, so a ring of n nodes takes 2(n−1) times its slowest hop if nothing
/// else uses the links. The result is exact for up to 16 nodes (dynamic programming over sets of visited
/// nodes). For more nodes a local search removes the slowest hop repeatedly (or-3opt moves); its result is
/// never worse than the given order.
std::vector<NodeId> best_ring(const HopTimes& times, const std::vector<NodeId>& given);

/// Orders the rings of one scenario, and searches only once for each set of nodes. Keeps the given order if
/// the scenario says so or if its collective is not a ring.
class RingOrders {
 public:
  explicit RingOrders(const Scenario& scenario);
  void apply(std::vector<NodeId>& ring);

 private:
  /// The ring with the sites of each region together, if no hop is then slower: fewer hops cross the links
  /// that the regions share.
  [[nodiscard]] std::vector<NodeId> by_region(std::vector<NodeId> ring) const;

  bool active_ = false;
  HopTimes times_;
  std::vector<int> region_;        // of each site, if regions share links; otherwise empty
  std::vector<std::size_t> rank_;  // position of each node in the best ring of all sites
  std::map<std::vector<NodeId>, std::vector<NodeId>> known_;
  std::size_t work_ = 0;
};

/// The note "ring order a → b → … : slowest hop x s instead of y s in the given order"; empty if the given
/// order remains.
std::string ring_order_note(const Scenario& scenario);

/// The best order is that for the model in one transfer. This note names an order that is more than 1 %
/// faster for the fragments or buckets of a round, in which latencies count more. Empty if there is none, or
/// if the scenario keeps the given order.
std::string divided_ring_note(const Scenario& scenario);

}  // namespace fomoe::costmodel
