// In which order a ring visits its nodes.
#pragma once
#include <map>
#include <vector>

#include "costmodel/plan/plan.hpp"

namespace fomoe::costmodel {

/// Seconds of one step over each hop, row = from.
struct HopTimes {
  int nodes = 0;
  std::vector<double> seconds;
  [[nodiscard]] double at(int from, int to) const {
    return seconds[static_cast<std::size_t>(from * nodes + to)];
  }
};

/// latency + chunk ÷ min(uplink, path, downlink, cap of a flow), of the effective platform. The chunk is that
/// of the whole model, 1/M of it on the wire.
HopTimes hop_times(const Scenario& scenario);

double slowest_hop_s(const HopTimes& times, const std::vector<NodeId>& ring);

/// Every node of a stepwise ring sends in every step, so a ring of n nodes takes its 2(n−1) steps of the
/// slowest hop where nothing else uses the links. This is the order with the fastest slowest hop: exactly
/// that for up to 16 nodes, by dynamic programming over sets of visited nodes; above that a search that takes
/// out the slowest hop again and again (or-3opt moves) and never ends worse than it began. The given order
/// where no other is better.
std::vector<NodeId> best_ring(const HopTimes& times, const std::vector<NodeId>& given);

/// Orders the rings of one scenario, each set of nodes once. Leaves them as given where the scenario says so
/// or nothing runs in a ring.
class RingOrders {
 public:
  explicit RingOrders(const Scenario& scenario);
  void apply(std::vector<NodeId>& ring);

 private:
  bool active_ = false;
  HopTimes times_;
  std::vector<std::size_t> rank_;  // of each node in the best ring of all
  std::map<std::vector<NodeId>, std::vector<NodeId>> known_;
  std::size_t work_ = 0;
};

/// "ring order a → b → … : slowest hop x s instead of y s as given"; empty where the given order stays.
std::string ring_order_note(const Scenario& scenario);

}  // namespace fomoe::costmodel
