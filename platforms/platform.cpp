#include "platforms/platform.hpp"

namespace fomoe::platforms {

Platform uniform(int count, double uplink_bytes_per_s, double downlink_bytes_per_s, double latency_s) {
  Platform platform;
  platform.name = "uniform";
  for (int i = 0; i < count; ++i) {
    platform.sites.push_back({"site-" + std::to_string(i), uplink_bytes_per_s, downlink_bytes_per_s});
  }
  platform.paths.assign(platform.sites.size() * platform.sites.size(), Path{latency_s, kUnlimited});
  return platform;
}

Platform scaled_bandwidth(Platform platform, double efficiency) {
  for (Site& site : platform.sites) {
    site.uplink_bytes_per_s *= efficiency;
    site.downlink_bytes_per_s *= efficiency;
  }
  for (Path& path : platform.paths) path.bandwidth_bytes_per_s *= efficiency;
  return platform;
}

}  // namespace fomoe::platforms
