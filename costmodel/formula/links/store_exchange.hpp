// How long sites take to upload objects to a store, and to download what they wait for.
#pragma once
#include <array>
#include <vector>

#include "costmodel/inputs/network_model.hpp"
#include "costmodel/plan/plan_summary.hpp"
#include "platforms/platform.hpp"

namespace fomoe::costmodel {

/// The links between the sites and the store.
struct StoreLinks {
  struct Site {
    double up_bytes_per_s, down_bytes_per_s;         // of the slower of the site's port and its path
    double up_latency_s, down_latency_s;             // to the store, and from it
    double connections = 1;                          // of a flow
    double cap_bytes_per_s = platforms::kUnlimited;  // of a flow whose windows are counted
    friend bool operator==(const Site&, const Site&) = default;
  };
  std::vector<Site> sites;                                  // one, if all are alike
  double count = 0;                                         // number of sites
  double uplink_bytes_per_s = 0, downlink_bytes_per_s = 0;  // of the store
};

/// The links of a platform whose last site is the store (platforms::with_store_as_site).
StoreLinks store_links(const platforms::Platform& platform, const NetworkModel& network = {});

/// Duration of a stage through a store among sites that begin it again and again. All flows of a port share
/// it fairly. An object, or its result, is downloaded when all who contribute to it have uploaded it; then
///   one object of S bytes, results of S′ bytes, equal sites and a fast store: 2 latencies + S ÷ uplink + S′
///   ÷ downlink
/// A site that downloads faster begins its next upload earlier, so with sites that differ the one with the
/// longest sum decides:
///   max over sites (2 latencies + S ÷ uplink + S′ ÷ downlink)
/// Of objects with few contributors it is not known here which sites these are: all sites count.
double store_exchange_s(const StoreLinks& links, const std::array<StoreObjects, 2>& objects);

}  // namespace fomoe::costmodel
