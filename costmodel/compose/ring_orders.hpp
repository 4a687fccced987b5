// The order in which the rings of a plan visit the sites, for strategy.ring_order = "best".
#pragma once
#include <map>
#include <string>
#include <vector>

#include "costmodel/inputs/scenario.hpp"
#include "costmodel/plan/plan.hpp"
#include "costmodel/plan/ring_order.hpp"

namespace fomoe::costmodel {

/// Time of each hop on the effective platform in the mean round, for a ring of all sites:
/// s·latency + b ÷ min(uplink, path, downlink, cap of a flow). The method's rings have s steps one after
/// another, and send b bytes over a hop. Transfers in buckets or tensor by tensor have more steps with the
/// same bytes. All hops take no time if the method has no rings.
HopTimes hop_times(const Scenario& scenario);

/// How ring_order_note() begins, and what is between the names of two sites.
inline constexpr const char *kRingOrderNote = "ring order ", *kRingArrow = " → ";

/// Orders the rings of one scenario, and searches only once for each set of nodes. Keeps the given order if
/// the scenario says so or if its collective is not a ring.
class RingOrders {
 public:
  explicit RingOrders(const Scenario& scenario);
  [[nodiscard]] bool active() const { return active_; }
  void apply(std::vector<NodeId>& ring);

 private:
  /// The ring with the sites of each region together, if no hop is then slower: fewer hops cross the links
  /// that the regions share.
  [[nodiscard]] std::vector<NodeId> by_region(std::vector<NodeId> ring) const;
  void set_ranks(const std::vector<NodeId>& ring);

  bool active_ = false;
  HopTimes times_;
  std::vector<int> region_;        // of each site, if regions share links; otherwise empty
  std::vector<std::size_t> rank_;  // position of each node in the best ring of all sites
  std::map<std::vector<NodeId>, std::vector<NodeId>> known_;
  std::size_t work_ = 0;
};

/// The plan of a method with its rings in order, and with a note if that is not the given order.
Plan with_ring_orders(const Scenario& scenario, Plan plan);

/// The note "ring order a → b → … : slowest hop x s instead of y s in the given order"; empty if the given
/// order remains. The report of a run keeps it, and is validated with the order of the run.
std::string ring_order_note(const Scenario& scenario);

}  // namespace fomoe::costmodel
