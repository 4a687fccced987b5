// Rings of the owners of experts, beside a ring of all sites.
#pragma once
#include <vector>

#include "costmodel/compose/ring_orders.hpp"
#include "costmodel/formula/links/links.hpp"

namespace fomoe::costmodel {

/// The hops of the rings of so many owners of each expert; of drawn owners, those of the mean over all sets
/// of them. Empty if the scenario has no such rings.
std::vector<OwnerHop> owner_hops(const Strategy& strategy, int owners, const std::vector<NodeId>& ring_of_all,
                                 RingOrders& orders);

/// Seconds of a step of the ring of all sites, and of one of the owners' rings, had each the ports alone.
struct RingSteps {
  double of_all = 0, of_owners = 0;
};

/// Over equal links: latency + bytes ÷ rate.
RingSteps ring_steps(const Stage& stage, const Links& links);
/// Over the hops with the longest steps.
RingSteps ring_steps(const Stage& stage, const LinkSets& sets);

/// Payload rate at which the port or path that needs longest for all bytes of the stage passes them on.
double slowest_bytes_per_s(const Stage& stage, const LinkSets& sets);

/// Duration of a stage with transfers beside it (both_end_s). What a step takes beyond bytes ÷ rate, it
/// waits, and the port is free for the other ring.
double side_by_side_s(const Stage& stage, const RingSteps& steps, double bytes_per_s);

}  // namespace fomoe::costmodel
