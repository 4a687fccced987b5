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

/// Whether latencies differ between pairs of sites.
inline bool latencies_differ(const Platform& platform) {
  bool differ = false;
  each_path(platform, [&](int /*from*/, int /*to*/, const Path& path) {
    differ = differ || path.latency_s != platform.path(0, 1).latency_s;
  });
  return differ;
}

}  // namespace fomoe::platforms
