#include "platforms/platform.hpp"

#include <algorithm>
#include <cmath>
#include <random>
#include <utility>

namespace fomoe::platforms {

Platform uniform(int count, double uplink_bytes_per_s, double downlink_bytes_per_s, double latency_s) {
  Platform platform;
  platform.name = "uniform";
  for (int i = 0; i < count; ++i) {
    platform.sites.push_back({"site-" + std::to_string(i), uplink_bytes_per_s, downlink_bytes_per_s});
  }
  platform.paths = Paths(count, {latency_s, kUnlimited});
  return platform;
}

double Platform::route_bytes_per_s(int from, int to) const {
  double rate = std::min({sites[static_cast<std::size_t>(from)].uplink_bytes_per_s,
                          path(from, to).bandwidth_bytes_per_s,
                          sites[static_cast<std::size_t>(to)].downlink_bytes_per_s});
  for (const int link : shared_by(from, to))
    rate = std::min(rate, shared_links[static_cast<std::size_t>(link)].bandwidth_bytes_per_s);
  return rate;
}

void Platform::share(int from, int to, std::vector<int> links, int at_receiver) {
  int shared = -1;
  if (!links.empty()) {
    SharedSet set{std::move(links), at_receiver};
    const auto known = std::find(shared_sets.begin(), shared_sets.end(), set);
    shared = static_cast<int>(known - shared_sets.begin());
    if (known == shared_sets.end()) shared_sets.push_back(std::move(set));
  }
  change_path(from, to, [&](Path& path) { path.shared = shared; });
}

std::string link_name(const Platform& platform, LinkChange::Link link, int from, int to) {
  const auto site = [&](int index) { return platform.sites[static_cast<std::size_t>(index)].name; };
  switch (link) {
    case LinkChange::Link::uplink:
      return "uplink of " + site(from);
    case LinkChange::Link::downlink:
      return "downlink of " + site(from);
    case LinkChange::Link::path:
      return "path " + site(from) + " to " + site(to);
    case LinkChange::Link::shared:
      return platform.shared_links[static_cast<std::size_t>(from)].name;
  }
  return "";
}

Platform with_store_as_site(Platform platform) {
  // Stands for an unlimited rate, so that products and quotients of rates stay finite.
  constexpr double kFastest_bytes_per_s = 1e18;
  if (!platform.store) return platform;
  const Store store = *std::exchange(platform.store, std::nullopt);
  const int sites = platform.size();
  const Paths between =
      std::exchange(platform.paths, Paths(sites + 1, platform.path(0, std::min(1, sites - 1))));
  for (int from = 0; from < sites && !between.alike(); ++from) {
    for (int to = 0; to < sites; ++to) {
      if (from != to) platform.paths.set(from, to, between.at(from, to));
    }
  }
  for (int site = 0; site < sites; ++site) {
    Path path{store.latency_s};
    path.machines = platform.sites[static_cast<std::size_t>(site)].machines;
    platform.paths.set(sites, site, path);
    path.streams = platform.sites[static_cast<std::size_t>(site)].streams;
    platform.paths.set(site, sites, path);
  }
  platform.sites.push_back({"store", std::min(store.uplink_bytes_per_s, kFastest_bytes_per_s),
                            std::min(store.downlink_bytes_per_s, kFastest_bytes_per_s)});
  return platform;
}

const std::string& site_name(const Platform& platform, int site) {
  static const std::string store = "store";
  return site < platform.size() ? platform.sites[static_cast<std::size_t>(site)].name : store;
}

Platform first_sites(const Platform& all, int count) {
  Platform platform = all;
  platform.sites.resize(static_cast<std::size_t>(count));
  platform.paths = Paths(count, all.path(0, std::min(1, all.size() - 1)));
  for (int from = 0; from < count && !all.paths.alike(); ++from) {
    for (int to = 0; to < count; ++to) {
      if (from != to) platform.paths.set(from, to, all.path(from, to));
    }
  }
  std::erase_if(platform.changes, [&](const LinkChange& change) {
    return change.link != LinkChange::Link::shared && (change.from >= count || change.to >= count);
  });
  return platform;
}

Platform generated(const Platform& measured, int count, std::uint64_t seed, double sigma,
                   double same_site_latency_s) {
  std::mt19937_64 random(seed);
  // All standard libraries implement this engine equally, but not the distributions. Uniform and normal draws
  // (Box and Muller 1958) are therefore computed here.
  const auto uniform_draw = [&] { return (static_cast<double>(random() >> 11) + 0.5) * 0x1p-53; };
  const auto factor = [&] {
    const double radius = std::sqrt(-2 * std::log(uniform_draw()));
    return std::exp(sigma * radius * std::cos(2 * std::acos(-1.0) * uniform_draw()));
  };
  Platform platform;
  platform.name = measured.name + ", generated";
  platform.shared_links = measured.shared_links;
  platform.shared_sets = measured.shared_sets;
  platform.provenance = measured.provenance;
  platform.measured_connections = measured.measured_connections;
  platform.payload_rates = measured.payload_rates;
  platform.machine_paths = measured.machine_paths;
  platform.packet_bytes = measured.packet_bytes;
  std::vector<int> like;
  std::vector<int> copies(measured.sites.size(), 0);
  for (int i = 0; i < count; ++i) {
    const int drawn = static_cast<int>(uniform_draw() * measured.size());
    like.push_back(drawn);
    Site site = measured.sites[static_cast<std::size_t>(drawn)];
    site.name.append("#").append(std::to_string(++copies[static_cast<std::size_t>(drawn)]));
    site.uplink_bytes_per_s *= factor();
    site.downlink_bytes_per_s *= factor();
    platform.sites.push_back(site);
  }
  platform.paths = Paths(count, {same_site_latency_s, kUnlimited});
  for (int from = 0; from < count; ++from) {
    for (int to = 0; to < count; ++to) {
      const int a = like[static_cast<std::size_t>(from)], b = like[static_cast<std::size_t>(to)];
      Path path{same_site_latency_s, kUnlimited};
      if (a != b) path = measured.path(a, b);
      if (a != b) path.bandwidth_bytes_per_s *= factor();
      platform.paths.set(from, to, path);
    }
  }
  return platform;
}

Platform with_machines(Platform platform, const std::vector<int>& machines) {
  const auto at = [&](int site) { return machines[static_cast<std::size_t>(site)]; };
  const auto path_factor = [&](int pairs) { return platform.machine_paths ? pairs : 1; };
  for (int site = 0; site < platform.size(); ++site) {
    Site& own = platform.sites[static_cast<std::size_t>(site)];
    if (own.machine_uplink) own.uplink_bytes_per_s *= at(site);
    if (own.machine_downlink) own.downlink_bytes_per_s *= at(site);
    own.machines = at(site);
  }
  const auto join = [&](Path& path, int pairs) {
    path.machines = pairs;
    path.bandwidth_bytes_per_s *= path_factor(pairs);
  };
  if (std::all_of(machines.begin(), machines.end(), [&](int one) { return one == machines.front(); })) {
    platform.paths.change_all([&](Path& path) { join(path, machines.front()); });
  } else {
    for (int from = 0; from < platform.size(); ++from)
      for (int to = 0; to < platform.size(); ++to)
        if (from != to)
          platform.change_path(from, to, [&](Path& path) { join(path, std::min(at(from), at(to))); });
  }
  for (LinkChange& change : platform.changes) {
    if (!change.bandwidth_bytes_per_s || change.link == LinkChange::Link::shared) continue;
    const Site& site = platform.sites[static_cast<std::size_t>(change.from)];
    const bool of_machine =
        change.link == LinkChange::Link::uplink ? site.machine_uplink : site.machine_downlink;
    *change.bandwidth_bytes_per_s *= change.link == LinkChange::Link::path
                                         ? path_factor(std::min(at(change.from), at(change.to)))
                                         : (of_machine ? at(change.from) : 1);
  }
  return platform;
}

Platform scaled_bandwidth(Platform platform, double efficiency) {
  for (Site& site : platform.sites) {
    site.uplink_bytes_per_s *= efficiency;
    site.downlink_bytes_per_s *= efficiency;
  }
  platform.paths.change_all([&](Path& path) { path.bandwidth_bytes_per_s *= efficiency; });
  for (SharedLink& link : platform.shared_links) link.bandwidth_bytes_per_s *= efficiency;
  if (platform.store) {
    platform.store->uplink_bytes_per_s *= efficiency;
    platform.store->downlink_bytes_per_s *= efficiency;
  }
  for (LinkChange& change : platform.changes) {
    if (change.bandwidth_bytes_per_s) *change.bandwidth_bytes_per_s *= efficiency;
  }
  return platform;
}

Platform changed_latencies(Platform platform, const std::function<double(double)>& change) {
  platform.paths.change_all([&](Path& path) { path.latency_s = change(path.latency_s); });
  for (LinkChange& one : platform.changes) {
    if (one.latency_s) one.latency_s = change(*one.latency_s);
  }
  if (platform.store) platform.store->latency_s = change(platform.store->latency_s);
  return platform;
}

}  // namespace fomoe::platforms
