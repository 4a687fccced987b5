// Sites and the directed paths between them, as plain data in SI units. No engine, no parsing.
#pragma once
#include <cstdint>
#include <limits>
#include <optional>
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
  std::string region = {};                 // of the backbones
  double compute_factor = 1;               // how many times as long a step takes here
};

/// What one region has towards another, in one direction; all paths from the one into the other share it.
struct Backbone {
  std::string from, to;  // regions
  double bandwidth_bytes_per_s = 0;
};

/// The directed path between two sites, between the uplink of one and the downlink of the other.
struct Path {
  double latency_s = 0;                       // one way
  double bandwidth_bytes_per_s = kUnlimited;  // what the path itself carries; unlimited: only the ports count
  int backbone = -1;                          // that the path shares with others; negative: none
};

/// From a moment of the run on, a link has another rate, or a path another latency. A rate of 0: it is down.
struct LinkChange {
  enum class Link { uplink, downlink, path, backbone };
  double at_s = 0;
  Link link = Link::uplink;
  int from = 0, to = 0;  // a port: its site twice; a path: its ends; a backbone: its index twice
  std::optional<double> bandwidth_bytes_per_s;
  std::optional<double> latency_s;
};

struct Platform {
  std::string name;
  std::vector<Site> sites;
  std::vector<Path> paths;  // sites.size()² entries, row = from; the diagonal is unused
  std::vector<Backbone> backbones = {};
  std::vector<LinkChange> changes = {};  // in the order of their times
  double changes_period_s = 0;           // after which they happen again; 0: once
  std::vector<Provenance> provenance = {};

  [[nodiscard]] int size() const { return static_cast<int>(sites.size()); }
  [[nodiscard]] const Path& path(int from, int to) const {
    return paths[static_cast<std::size_t>(from * size() + to)];
  }
  [[nodiscard]] Path& path(int from, int to) { return paths[static_cast<std::size_t>(from * size() + to)]; }
};

/// `count` equal sites named site-0…, the same latency (one way) between any two, paths unlimited.
Platform uniform(int count, double uplink_bytes_per_s, double downlink_bytes_per_s, double latency_s);

/// "uplink of paris", "path paris to tokyo", …: what reports call the link.
std::string link_name(const Platform& platform, LinkChange::Link link, int from, int to);

/// The first `count` sites, with all that is between them.
Platform first_sites(const Platform& all, int count);

/// `count` sites, each like one that is drawn from those of `measured` (equally likely, seeded), with rates
/// that are off by a factor exp(σ·z), z standard normal: paths between two sites are like those between the
/// sites they were drawn from. Two that were drawn from the same site are `same_site_latency_s` apart.
Platform generated(const Platform& measured, int count, std::uint64_t seed, double sigma,
                   double same_site_latency_s);

/// Every site behind so many machines, each with the measured rates: all rates multiplied.
Platform with_gateways(Platform platform, int gateways);

/// The same platform with every capacity multiplied by `efficiency`: what payload gets of a raw link.
Platform scaled_bandwidth(Platform platform, double efficiency);

}  // namespace fomoe::platforms
