// A platform laid out as what the relay and the namespaces need: addresses, links and routes. Pure data.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "platforms/platform.hpp"

namespace fomoe::platforms::wan {

inline constexpr const char* kInterface = "wan0";  // of every site, in its own namespace
inline constexpr int kMostSites = 250;             // one 10.83.0.0/24 for all

/// A queue that sends at a fixed rate, first in first out, and drops what does not fit.
struct Link {
  std::string name;
  double bytes_per_s = 0;
  double queue_bytes = 0;
};

/// What a packet passes: all links in turn; the latency lies before the last, the downlink.
struct Route {
  std::vector<int> links;
  double latency_s = 0;
};

struct SiteLayout {
  std::string name;
  std::uint32_t address = 0;  // IPv4, host byte order
};

struct Layout {
  std::vector<SiteLayout> sites;
  std::vector<Link> links;
  std::vector<Route> routes;  // sites², row = from; the diagonal is unused
  int mtu = 1500;

  [[nodiscard]] int size() const { return static_cast<int>(sites.size()); }
  [[nodiscard]] const Route& route(int from, int to) const {
    return routes[static_cast<std::size_t>(from * size() + to)];
  }
  /// Of the slowest link between the two.
  [[nodiscard]] double rate_bytes_per_s(int from, int to) const;
  /// There and back, with the time that `wire_bytes` take through each link when nothing else is under way.
  [[nodiscard]] double round_trip_s(int a, int b, double wire_bytes) const;
  /// The most that the relay may have to carry: it passes every byte once.
  [[nodiscard]] double aggregate_bytes_per_s() const;
  /// The site that has this address, or -1.
  [[nodiscard]] int site_of(std::uint32_t address) const;
};

/// Room for what three senders that each knew the whole link (BBR's start-up gain: 2.89 products of rate and
/// round trip) have under way at once. Simulated links are fluid and lose nothing; in a queue of one product
/// a burst of two sites at a third loses packets, and what TCP then makes of it is another subject.
inline constexpr double kQueueProducts = 8;

struct LayoutOptions {
  int mtu = 1500;
  std::optional<double> queue_bytes;       // of each link; otherwise
  double queue_products = kQueueProducts;  // × its rate × its longest round trip, ≥ 256 KiB
};

/// Throws InputError for what cannot be emulated: links that change over time, more sites than addresses.
Layout lay_out(const Platform& platform, const LayoutOptions& options);

/// The same sites without any limit or latency: what the relay itself can carry.
Layout without_limits(Layout layout);

/// "10.83.0.1"
std::string dotted(std::uint32_t address);

/// What CMD finds in its environment at that site. FOMOE_LINKS says that links are emulated, and whether
/// that was checked before: "emulated and checked" or "emulated".
std::vector<std::pair<std::string, std::string>> site_environment(const Layout& layout, int site,
                                                                  int master_port,
                                                                  const std::string& report_path,
                                                                  bool checked);

struct CoreShares {
  int relay = 0;
  std::vector<std::vector<int>> sites;
  bool shared = false;  // there are too few cores for each site to have its own
};
/// `per_site` of the allowed cores for each site, none of them the relay's. Throws InputError where that is
/// more than there are.
CoreShares share_cores(const std::vector<int>& allowed, int sites, int per_site);

}  // namespace fomoe::platforms::wan
