// The links over which the closed form sends the bytes of a stage.
#pragma once
#include <algorithm>
#include <memory>
#include <vector>

#include "costmodel/formula/links/store_exchange.hpp"
#include "costmodel/inputs/scenario.hpp"
#include "costmodel/plan/plan_summary.hpp"

namespace fomoe::costmodel {

/// Payload rates and latency between a sender and a receiver. What a link or a measurement allows each
/// connection is in the rate of the path.
struct Links {
  double uplink_bytes_per_s;    // of the sender
  double downlink_bytes_per_s;  // of the receiver
  double path_bytes_per_s;
  double latency_s;  // one-way
  double round_trip_s;
  double cap_bytes_per_s;  // of a flow whose windows are counted; otherwise it is in the path's rate
  int from = -1, to = -1;  // sites; negative if the links represent all sites
  double connections = 1;  // of a flow
  bool measured_connection = false;  // the rate of one was measured, so its buffers are in the path's rate

  [[nodiscard]] double port_bytes_per_s() const { return std::min(uplink_bytes_per_s, downlink_bytes_per_s); }
};

struct RegionLinks;

/// From a site to the next one in rings of the owners of experts.
struct OwnerHop {
  int from, to;
  double share;  // of what the site sends in a step of these rings
  int ring;      // rings of different numbers do not wait for each other
};
struct OwnerLinks {
  Links links;
  double share;
  int ring;
};

/// The links of a platform, as the closed form uses them. If sites are equal, only `all` is used.
struct LinkSets {
  Links all;                             // the slowest ports and path and the longest latency of the platform
  std::vector<Links> ring;               // hops of the ring that may decide how long it takes
  std::vector<Links> pairs, first_site;  // likewise for direct exchanges and stars; only with `windows`
  /// The terms of connections whose windows are counted (connection_window.hpp); null: none are.
  std::shared_ptr<const NetworkModel> windows;
  std::shared_ptr<const platforms::Platform> sites;  // with payload rates
  std::shared_ptr<const StoreLinks> store;           // with payload rates; null: the platform has none
  std::shared_ptr<const RegionLinks> regions;        // null: no regions, or they are all alike
  std::vector<int> ring_order;  // if sites differ, paths share links, or egress has a price by destination
  std::vector<OwnerHop> owner_hops;  // as ring_order (owner_rings.hpp)
  std::vector<OwnerLinks> owners;    // their links, if sites differ
  double payload_s_per_byte = 0;     // of preparing what a site sends, during which it does not send
  /// Direct exchanges that were computed over these sites: rows of a sweep repeat them.
  struct Exchange {
    double steps, pair_bytes, seconds;
  };
  mutable std::vector<Exchange> exchanges = {};
};

/// Seconds in which sites prepare the payloads of a stage before they send them, one step after another. In a
/// star, each site prepares what it sends to the first one, which then prepares what it sends to all, also to
/// its own worker.
inline double preparation_s(const Stage& stage, double payload_s_per_byte) {
  if (stage.between == Between::store)
    return payload_s_per_byte * (stage.objects[0].uploaded() + stage.objects[1].uploaded());
  if (!stage.star) return payload_s_per_byte * stage.bytes;
  return payload_s_per_byte *
         (stage.out_share * (stage.bytes + stage.pair_bytes) + (1.0 - stage.out_share) * stage.pair_bytes);
}

/// Duration of a stage over these links: hops · latency + max(bytes ÷ port, bytes of a pair ÷ path). With
/// transfers beside it, one of both sends while the other waits (side_by_side_s). In a star, the
/// first site first receives all bytes of one direction and then sends all of the other one:
///   max(bytes in ÷ downlink, bytes of a pair in ÷ uplink) + max(bytes out ÷ uplink, bytes of a pair out ÷
///   downlink)
double stage_s(const Stage& stage, const Links& links);

/// Duration of a direct exchange among sites that begin it again and again: `steps` times, each site sends
/// `pair_bytes` to each other one. The flows of a port share it fairly, and a flow ends when both of its
/// ports have passed it on. What a flow leaves unused at one port because the other one is slower is
/// neglected.
double direct_exchange_s(const platforms::Platform& platform, double steps, double pair_bytes);
/// Duration of a star: the first site sends `out_bytes` to each other one, which sends `back_bytes` back.
double star_s(const platforms::Platform& platform, double out_bytes, double back_bytes);

/// Duration of a stage without the preparation of payloads, part by part (region_links.hpp). Each hop of a
/// ring carries the same bytes in each of its steps, so the slowest hop decides.
double sending_s(const Stage& stage, const LinkSets& sets);

/// Duration of a stage.
inline double stage_s(const Stage& stage, const LinkSets& sets) {
  const double sending = sending_s(stage, sets);
  if (sets.payload_s_per_byte == 0) return sending;
  return sending + preparation_s(stage, sets.payload_s_per_byte);
}

/// The links of the scenario's platform, with payload rates (effective_platform). Links that cannot decide a
/// stage, because others are slower in every respect, are left out.
LinkSets link_sets(const Scenario& scenario);

}  // namespace fomoe::costmodel
