// The data model of a platform: sites and the directed paths between them, in SI units. It needs neither an
// engine nor a parser.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "platforms/paths.hpp"
#include "platforms/provenance.hpp"

namespace fomoe::platforms {

/// One data centre. All bytes that it sends leave through one uplink, and all bytes that it receives enter
/// through one downlink. Flows share each of these links equally.
struct Site {
  std::string name;
  double uplink_bytes_per_s = 0;
  double downlink_bytes_per_s = 0;
  double fabric_bytes_per_s = kUnlimited;  // rate of one flow between two nodes of the site
  std::string region = {};                 // region for backbones in a platform file
  double compute_factor = 1;               // duration of a step at this site ÷ the scenario's step time
  double queue_s = 0;                      // longest time that data may wait in the queue of its uplink
  bool machine_uplink = false, machine_downlink = false;  // rates of one machine; otherwise of the line
  int machines = 1;           // machines that carry the site's traffic; their rates are added already
  bool own_machines = false;  // their number was given for this site alone
  int streams = 0;            // connections of what it sends, as Path::streams
};

/// A link on the routes of several pairs of sites, in one direction: a backbone, an office's line, transit.
struct SharedLink {
  std::string name;  // as in reports, for instance "backbone europe to america"
  double bandwidth_bytes_per_s = 0;
  bool per_flow = false;  // limits each flow by itself; flows do not share the rate
};

/// The shared links of a path, in the order in which data pass them, as indices in Platform::shared_links.
struct SharedSet {
  std::vector<int> links;
  int at_receiver = 0;  // how many of the last ones are at the receiver, behind the latency of the path
  friend bool operator==(const SharedSet&, const SharedSet&) = default;
};

/// A store of objects, such as S3, to which sites upload and from which they download. It never trains.
struct Store {
  double uplink_bytes_per_s = kUnlimited;    // rate at which the store sends to all sites together
  double downlink_bytes_per_s = kUnlimited;  // rate at which it receives from all sites together
  double latency_s = 0;                      // one way, to each site and back
  /// Whether it, or an aggregator beside it, combines what the sites upload, so that each site downloads one
  /// result. Otherwise each site downloads what the others have uploaded.
  bool aggregates = true;
  /// Share of the values that a result of sparse payloads has; empty: all values that any site sent.
  std::optional<double> result_share = {};
};

/// A change of a link's rate, or of a path's latency, at a moment of the run. A link of rate 0 is down.
struct LinkChange {
  enum class Link { uplink, downlink, path, shared };
  double at_s = 0;
  Link link = Link::uplink;
  // Uplink, downlink: the index of the site in both. Path: its two sites. Shared link: its index in both.
  int from = 0, to = 0;
  std::optional<double> bandwidth_bytes_per_s;
  std::optional<double> latency_s;
};

struct Platform {
  std::string name;
  std::vector<Site> sites;
  Paths paths;
  std::vector<SharedLink> shared_links = {};
  std::vector<SharedSet> shared_sets = {};  // see Path::shared
  std::vector<LinkChange> changes = {};     // in the order of their times: see platforms/link_changes.hpp
  double changes_period_s = 0;              // period with which the changes repeat; 0 if they happen once
  double changes_start_s = 0;               // time on the clock of the changes at which the run starts
  int measured_connections = 0;  // connections between two sites that reached the rates together; 0: unknown
  bool machine_paths = false;    // rates of paths are those of one machine at each end
  bool payload_rates = false;    // rates are those of TCP payload; otherwise headers take a part of them
  double packet_bytes = 1500;    // largest packet, with the headers of IP and TCP (MTU)
  std::optional<Store> store = {};
  std::vector<Provenance> provenance = {};

  [[nodiscard]] int size() const { return static_cast<int>(sites.size()); }
  [[nodiscard]] const Path& path(int from, int to) const { return paths.at(from, to); }
  /// Applies `change`, a function of Path&, to the path between two sites.
  template <class Change>
  void change_path(int from, int to, const Change& change) {
    Path path = paths.at(from, to);
    change(path);
    paths.set(from, to, path);
  }
  void set_latency(int from, int to, double seconds) {
    change_path(from, to, [&](Path& path) { path.latency_s = seconds; });
  }
  void set_path_rate(int from, int to, double bytes_per_s) {
    change_path(from, to, [&](Path& path) { path.bandwidth_bytes_per_s = bytes_per_s; });
  }
  /// The shared links on the path between two sites, as indices in shared_links.
  [[nodiscard]] std::span<const int> shared_by(int from, int to) const {
    const int set = path(from, to).shared;
    if (set < 0) return {};
    return shared_sets[static_cast<std::size_t>(set)].links;
  }
  /// Those of them that are at the receiver.
  [[nodiscard]] std::span<const int> shared_at_receiver(int from, int to) const {
    const int set = path(from, to).shared;
    if (set < 0) return {};
    return shared_by(from, to).last(
        static_cast<std::size_t>(shared_sets[static_cast<std::size_t>(set)].at_receiver));
  }
  /// Rate of a lone flow between two sites: that of the slowest link of the route.
  [[nodiscard]] double route_bytes_per_s(int from, int to) const;
  /// Makes a path use exactly these shared links.
  void share(int from, int to, std::vector<int> links, int at_receiver = 0);
};

/// A platform of `count` equal sites, named site-0 and so on, with the same one-way latency between any two,
/// and unlimited paths.
Platform uniform(int count, double uplink_bytes_per_s, double downlink_bytes_per_s, double latency_s);

/// The name of a link in reports, for instance "uplink of paris" or "path paris to tokyo".
std::string link_name(const Platform& platform, LinkChange::Link link, int from, int to);

/// The platform that consists of the first `count` sites, the paths between them and their changes over time.
Platform first_sites(const Platform& all, int count);

/// A random platform of `count` sites. Each site is a copy of a site of `measured`, drawn uniformly with the
/// seed. Its rates are multiplied by factors exp(σ·z), with z standard normal. The path between two sites
/// copies the path between their originals, with such a factor. Two copies of the same site have a latency of
/// `same_site_latency_s`.
Platform generated(const Platform& measured, int count, std::uint64_t seed, double sigma,
                   double same_site_latency_s);

/// The platform whose sites have that many machines each. Uplinks and downlinks with the rates of one machine
/// (Site::machine_uplink, Site::machine_downlink) are multiplied by the number, paths with such rates by the
/// smaller number of both ends, and so are their changes. Lines and links that several paths share keep their
/// rates. The machines of both ends have connections of their own (Path::machines).
Platform with_machines(Platform platform, const std::vector<int>& machines);

/// The network of the platform for executors: the store, if there is one, becomes one more site after all
/// others, which is where the nodes of a traffic plan that have the kind `store` are.
Platform with_store_as_site(Platform platform);

/// The name of a site in reports, or of the store if the index is that of with_store_as_site().
const std::string& site_name(const Platform& platform, int site);

/// The platform with every rate multiplied by `efficiency`, the fraction of a raw link's rate that remains
/// for payload.
Platform scaled_bandwidth(Platform platform, double efficiency);
/// The platform with every latency, of paths, of their changes and of the store, replaced by `change` of it.
Platform changed_latencies(Platform platform, const std::function<double(double)>& change);

}  // namespace fomoe::platforms
