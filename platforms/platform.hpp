// Sites and the directed paths between them, as plain data in SI units. No engine, no parsing.
#pragma once
#include <limits>
#include <string>
#include <vector>

#include "platforms/provenance.hpp"

namespace fomoe::platforms {

inline constexpr double kUnlimited = std::numeric_limits<double>::infinity();

/// One data centre. Everything it sends leaves through one uplink and everything it receives enters
/// through one downlink; flows share each of them equally.
struct Site {
  std::string name;
  double uplink_bytes_per_s = 0;
  double downlink_bytes_per_s = 0;
  double fabric_bytes_per_s = kUnlimited;  // of one flow between two nodes of the site
};

/// The directed path between two sites, between the uplink of one and the downlink of the other.
struct Path {
  double latency_s = 0;                       // one way
  double bandwidth_bytes_per_s = kUnlimited;  // what the path itself carries; unlimited: only the ports count
};

struct Platform {
  std::string name;
  std::vector<Site> sites;
  std::vector<Path> paths;  // sites.size()² entries, row = from; the diagonal is unused
  std::vector<Provenance> provenance;

  [[nodiscard]] int size() const { return static_cast<int>(sites.size()); }
  [[nodiscard]] const Path& path(int from, int to) const {
    return paths[static_cast<std::size_t>(from * size() + to)];
  }
  [[nodiscard]] Path& path(int from, int to) { return paths[static_cast<std::size_t>(from * size() + to)]; }
};

/// `count` equal sites named site-0…, the same latency (one way) between any two, paths unlimited.
Platform uniform(int count, double uplink_bytes_per_s, double downlink_bytes_per_s, double latency_s);

/// The same platform with every capacity multiplied by `efficiency` (0, 1]: what payload gets of a raw link.
Platform scaled_bandwidth(Platform platform, double efficiency);

}  // namespace fomoe::platforms
