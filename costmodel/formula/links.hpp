// The links over which the closed form sends the bytes of a stage.
#pragma once
#include <algorithm>
#include <memory>
#include <type_traits>
#include <vector>

#include "costmodel/inputs/scenario.hpp"
#include "costmodel/math/lanes.hpp"
#include "costmodel/plan/plan_summary.hpp"

namespace fomoe::costmodel {

/// Payload rates and latency between a sender and a receiver.
template <class V>
struct Links {
  V port_bytes_per_s;  // the slower one of the sender's uplink and the receiver's downlink
  V path_bytes_per_s;
  V latency_s;             // one-way
  int from = -1, to = -1;  // sites; negative if the links represent all sites
};

/// The links of a platform, as the closed form uses them. If sites are equal, only `all` is used.
template <class V>
struct LinkSets {
  Links<V> all;                // the slowest port and path and the longest latency of the platform
  std::vector<Links<V>> ring;  // hops of the ring that may decide how long it takes
  /// The sites, whose rates are to be multiplied by `share`.
  std::shared_ptr<const platforms::Platform> sites;
  V share = constant<V>(1);
};

/// Duration of a stage over these links: hops · latency + max(bytes ÷ port, bytes of a pair ÷ path).
template <class V>
V stage_s(const Stage<V>& stage, const Links<V>& links) {
  return stage.latency_hops * links.latency_s +
         max_of(V(stage.bytes / links.port_bytes_per_s), V(stage.pair_bytes / links.path_bytes_per_s));
}

/// Duration of a direct exchange among sites that begin it again and again: `steps` times, each site sends
/// `pair_bytes` to each other one. The flows of a port share it fairly, and a flow ends when both of its
/// ports have passed it on. What a flow leaves unused at one port because the other one is slower is
/// neglected.
double direct_exchange_s(const platforms::Platform& platform, double steps, double pair_bytes);
/// Duration of a star: the first site sends `pair_bytes` to each other one, which sends as much back.
double star_s(const platforms::Platform& platform, double pair_bytes);

/// The same for each lane.
template <class V, class Seconds>
V each_lane(const Stage<V>& stage, const V& share, const Seconds& seconds) {
  if constexpr (std::is_same_v<V, double>) {
    return seconds(stage.latency_hops, stage.pair_bytes / share);
  } else {
    V result;
    for (std::size_t lane = 0; lane < V::kLanes; ++lane) {
      const double hops = stage.latency_hops[lane], bytes = stage.pair_bytes[lane] / share[lane];
      const bool as_before = lane > 0 && hops == stage.latency_hops[lane - 1] &&
                             bytes == stage.pair_bytes[lane - 1] / share[lane - 1];
      result[lane] = as_before ? result[lane - 1] : seconds(hops, bytes);
    }
    return result;
  }
}

/// Duration of a stage. Each hop of a ring carries the same bytes in each of its steps, so the slowest hop
/// decides.
template <class V>
V stage_s(const Stage<V>& stage, const LinkSets<V>& sets) {
  if (sets.sites == nullptr || stage.between == Between::any) return stage_s(stage, sets.all);
  if (stage.between == Between::ring) {
    V longest_s = constant<V>(0);
    for (const Links<V>& hop : sets.ring) longest_s = max_of(longest_s, stage_s(stage, hop));
    return longest_s;
  }
  return each_lane(stage, sets.share, [&](double hops, double bytes) {
    return stage.between == Between::pairs ? direct_exchange_s(*sets.sites, hops, bytes / std::max(1.0, hops))
                                           : star_s(*sets.sites, bytes / 2);
  });
}

/// The links of the platform, whose rates must be those of payload (effective_platform) if the result shall
/// be. Links that cannot decide a stage, because others are slower in every respect, are left out.
LinkSets<double> link_sets(const Scenario& scenario, const platforms::Platform& platform);

/// Whether the closed form represents the scenario's sites. Links must not change, and no paths may share a
/// backbone. If links differ, each stage must be a ring, a direct exchange or a star. If step times differ,
/// each stage must be a ring or a direct exchange that no steps hide, since all sites then wait for the
/// slowest one.
bool represents_sites(const Scenario& scenario, const PlanSummary& summary);

}  // namespace fomoe::costmodel
