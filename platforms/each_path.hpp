// Visits the paths of a platform.
#pragma once
#include "platforms/platform.hpp"

namespace fomoe::platforms {

/// Calls visit(from, to, path) for each ordered pair of sites; if all paths are alike, for one pair only.
template <class Visit>
void each_path(const Platform& platform, const Visit& visit) {
  for (int from = 0; from < platform.size(); ++from) {
    for (int to = 0; to < platform.size(); ++to) {
      if (from == to) continue;
      visit(from, to, platform.path(from, to));
      if (platform.paths.alike()) return;
    }
  }
}

/// Whether ports differ between sites, or rates or latencies between pairs of sites.
inline bool links_differ(const Platform& platform) {
  const Site& first = platform.sites.front();
  bool differ = false;
  for (const Site& site : platform.sites)
    differ = differ || site.uplink_bytes_per_s != first.uplink_bytes_per_s ||
             site.downlink_bytes_per_s != first.downlink_bytes_per_s;
  each_path(platform, [&](int /*from*/, int /*to*/, const Path& path) {
    const Path& other = platform.path(0, 1);
    differ = differ || path.latency_s != other.latency_s ||
             path.bandwidth_bytes_per_s != other.bandwidth_bytes_per_s ||
             path.connection_bytes_per_s != other.connection_bytes_per_s;
  });
  return differ;
}

/// Whether latencies differ between pairs of sites.
inline bool latencies_differ(const Platform& platform) {
  bool differ = false;
  each_path(platform, [&](int /*from*/, int /*to*/, const Path& path) {
    differ = differ || path.latency_s != platform.path(0, 1).latency_s;
  });
  return differ;
}

}  // namespace fomoe::platforms
