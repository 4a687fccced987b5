// The layout of an emulated platform: the addresses, links and routes that the relay and the namespaces need.
// Plain data.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "platforms/platform.hpp"

namespace fomoe::platforms::wan {

inline constexpr const char* kInterface = "wan0";  // name of every site's interface, in its own namespace
inline constexpr int kMostSites = 250;             // all addresses are in 10.83.0.0/24

/// Headers of a segment: IP, TCP and its timestamps (RFC 791, RFC 9293, RFC 7323).
inline constexpr double kIpAndTcpHeaders_bytes = 20 + 20 + 12;

/// A first-in first-out queue that sends at a fixed rate, and drops packets that do not fit.
struct Link {
  std::string name;
  double bytes_per_s = 0;
  double queue_bytes = 0;
};

/// The route of a packet: it passes all links in order. The latency applies before the last link, the
/// downlink.
struct Route {
  std::vector<int> links;  // indices of Layout::links
  double latency_s = 0;    // one way
};

struct SiteLayout {
  std::string name;
  std::uint32_t address = 0;  // IPv4, host byte order
};

struct Layout {
  std::vector<SiteLayout> sites;
  std::vector<Link> links;
  std::vector<Route> routes;  // sites² entries, row = from; the diagonal is unused
  int mtu = 1500;

  [[nodiscard]] int size() const { return static_cast<int>(sites.size()); }
  [[nodiscard]] const Route& route(int from, int to) const {
    return routes[static_cast<std::size_t>(from * size() + to)];
  }
  /// Rate of the slowest link from `from` to `to`.
  [[nodiscard]] double rate_bytes_per_s(int from, int to) const;
  /// Round trip of a packet of `wire_bytes` without other traffic: the latencies, plus its transmission time
  /// on each link.
  [[nodiscard]] double round_trip_s(int a, int b, double wire_bytes) const;
  /// The greatest load of the relay, which passes every byte once: what all sites together can send, or what
  /// they can receive, whichever is smaller.
  [[nodiscard]] double aggregate_bytes_per_s() const;
  /// Index of the site with this address, or -1.
  [[nodiscard]] int site_of(std::uint32_t address) const;
};

/// Queue size in bandwidth-delay products: room for three senders that each fill the link by themselves, with
/// BBR's start-up gain of 2.89 products each. Simulated links are fluid and lose nothing. In a queue of one
/// product, a burst of two sites to a third one loses packets, and the emulation would measure TCP's loss
/// recovery.
inline constexpr double kQueueProducts = 8;

struct LayoutOptions {
  int mtu = 1500;
  std::optional<double> queue_bytes;  // queue size of every link
  // If queue_bytes is empty, a queue has queue_products × the link's rate × its longest round trip, at least
  // 256 KiB.
  double queue_products = kQueueProducts;
};

/// Computes the layout of a platform. Throws InputError if the platform cannot be emulated: links that change
/// over time, or more than kMostSites sites.
Layout lay_out(const Platform& platform, const LayoutOptions& options);

/// The same layout without rate limits and latencies, for measuring the relay's own throughput.
Layout without_limits(Layout layout);

/// The address as text, for instance "10.83.0.1".
std::string dotted(std::uint32_t address);

/// One of the processes that run the user's command (CMD) at a site. The processes of a site have consecutive
/// ranks.
struct SiteProcess {
  int site = 0;
  int local_rank = 0;  // among the processes of the site
  int per_site = 1;
  int on_same_cores = 1;  // all processes that the user's command has on the cores of this one
};

/// The environment variables of such a process. FOMOE_PROCESSES is `on_same_cores`, from which fomoe-train
/// derives its number of threads. FOMOE_LINKS says that links are emulated, and whether the emulation was
/// checked before: "emulated and checked" or "emulated".
std::vector<std::pair<std::string, std::string>> process_environment(const Layout& layout,
                                                                     const SiteProcess& process,
                                                                     int master_port,
                                                                     const std::string& report_path,
                                                                     bool checked);

/// The CPU cores of the relay and of the sites.
struct CoreShares {
  int relay = 0;
  std::vector<std::vector<int>> sites;  // [site]: its cores
  bool shared = false;                  // there are too few cores for each site to have its own
};
/// Assigns one of the allowed cores to the relay, and `per_site` of the others to each site. Throws
/// InputError if `per_site` exceeds the number of other cores.
CoreShares share_cores(const std::vector<int>& allowed, int sites, int per_site);

}  // namespace fomoe::platforms::wan
