#include "platforms/wan/network/layout.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "platforms/support/input_error.hpp"

namespace fomoe::platforms::wan {

namespace {

constexpr std::uint32_t kFirstAddress = (10U << 24) | (83U << 16) | 1U;
constexpr double kLeastQueue_bytes = 256 * 1024;

void refuse_what_changes(const Platform& platform) {
  if (!platform.changes.empty()) {
    throw InputError("platform.trace", "links that change over time",
                     "links that do not change, because fomoe-wan does not emulate changes",
                     "a platform without trace");
  }
  if (platform.size() > kMostSites) {
    throw InputError("platform.sites", std::to_string(platform.size()),
                     fmt::format("at most {} sites on one machine", kMostSites), "sites = 4");
  }
}

/// The longest round trip of all routes over `link`.
double longest_round_trip_s(const Layout& layout, int link) {
  double longest_s = 0;
  for (int from = 0; from < layout.size(); ++from) {
    for (int to = 0; to < layout.size(); ++to) {
      const Route& route = layout.route(from, to);
      if (std::find(route.links.begin(), route.links.end(), link) == route.links.end()) continue;
      longest_s = std::max(longest_s, route.latency_s + layout.route(to, from).latency_s);
    }
  }
  return longest_s;
}

}  // namespace

Layout lay_out(const Platform& platform, const LayoutOptions& options) {
  refuse_what_changes(platform);
  Layout layout;
  layout.mtu = options.mtu;
  const int count = platform.size();
  // The relay counts whole packets. Of rates of payload, they take more than their payload does.
  const double with_headers =
      platform.payload_rates ? options.mtu / (options.mtu - kIpAndTcpHeaders_bytes) : 1.0;
  const auto add_link = [&](std::string name, double bytes_per_s) {
    layout.links.push_back({std::move(name), bytes_per_s * with_headers, 0});
    return static_cast<int>(layout.links.size()) - 1;
  };
  std::vector<int> uplinks, downlinks, shared;
  for (int site = 0; site < count; ++site) {
    const Site& of = platform.sites[static_cast<std::size_t>(site)];
    layout.sites.push_back({of.name, kFirstAddress + static_cast<std::uint32_t>(site)});
    uplinks.push_back(add_link("uplink of " + of.name, of.uplink_bytes_per_s));
    downlinks.push_back(add_link("downlink of " + of.name, of.downlink_bytes_per_s));
  }
  for (const SharedLink& link : platform.shared_links) {
    if (link.per_flow)
      throw InputError("platform", "the link \"" + link.name + "\", which limits each flow by itself",
                       "links whose rate all flows share", "per_flow = false");
    shared.push_back(add_link(link.name, link.bandwidth_bytes_per_s));
  }
  for (int from = 0; from < count; ++from) {
    for (int to = 0; to < count; ++to) {
      Route& route = layout.routes.emplace_back();
      if (from == to) continue;
      const Path& path = platform.path(from, to);
      route.latency_s = path.latency_s;
      route.links.push_back(uplinks[static_cast<std::size_t>(from)]);
      if (path.bandwidth_bytes_per_s < kUnlimited) {
        const std::string name =
            link_name(platform, LinkChange::Link::path, from, to);  // the name in all other reports
        route.links.push_back(add_link(name, path.bandwidth_bytes_per_s));
      }
      for (const int link : platform.shared_by(from, to))
        route.links.push_back(shared[static_cast<std::size_t>(link)]);
      route.links.push_back(downlinks[static_cast<std::size_t>(to)]);
    }
  }
  for (int link = 0; link < static_cast<int>(layout.links.size()); ++link) {
    Link& of = layout.links[static_cast<std::size_t>(link)];
    of.queue_bytes = options.queue_bytes.value_or(std::max(
        kLeastQueue_bytes, options.queue_products * of.bytes_per_s * longest_round_trip_s(layout, link)));
  }
  return layout;
}

Layout without_limits(Layout layout) {
  for (Link& link : layout.links) link.bytes_per_s = kUnlimited;
  for (Route& route : layout.routes) route.latency_s = 0;
  return layout;
}

double Layout::rate_bytes_per_s(int from, int to) const {
  double rate = kUnlimited;
  for (const int link : route(from, to).links)
    rate = std::min(rate, links[static_cast<std::size_t>(link)].bytes_per_s);
  return rate;
}

double Layout::round_trip_s(int a, int b, double wire_bytes) const {
  double sum_s = 0;
  for (const Route* one_way : {&route(a, b), &route(b, a)}) {
    sum_s += one_way->latency_s;
    for (const int link : one_way->links)
      sum_s += wire_bytes / links[static_cast<std::size_t>(link)].bytes_per_s;
  }
  return sum_s;
}

double Layout::aggregate_bytes_per_s() const {
  // A site's paths bound what it can send and receive, as do its uplink and downlink.
  double out = 0, in = 0;
  for (int site = 0; site < size(); ++site) {
    double paths_out = 0, paths_in = 0;
    for (int other = 0; other < size(); ++other) {
      if (other == site) continue;
      paths_out += rate_bytes_per_s(site, other);
      paths_in += rate_bytes_per_s(other, site);
    }
    // lay_out() places the uplink and the downlink of site k at links 2k and 2k + 1.
    out += std::min(links[static_cast<std::size_t>(2 * site)].bytes_per_s, paths_out);
    in += std::min(links[static_cast<std::size_t>(2 * site + 1)].bytes_per_s, paths_in);
  }
  return std::min(out, in);
}

int Layout::site_of(std::uint32_t address) const {
  const std::uint32_t index = address - kFirstAddress;  // lower addresses wrap to large indices
  return index < static_cast<std::uint32_t>(size()) ? static_cast<int>(index) : -1;
}

std::string dotted(std::uint32_t address) {
  return fmt::format("{}.{}.{}.{}", address >> 24, (address >> 16) & 255U, (address >> 8) & 255U,
                     address & 255U);
}

std::vector<std::pair<std::string, std::string>> process_environment(const Layout& layout,
                                                                     const SiteProcess& process,
                                                                     int master_port,
                                                                     const std::string& report_path,
                                                                     bool checked) {
  std::vector<std::pair<std::string, std::string>> variables = {
      {"RANK", std::to_string(process.site * process.per_site + process.local_rank)},
      {"WORLD_SIZE", std::to_string(layout.size() * process.per_site)},
      {"LOCAL_RANK", std::to_string(process.local_rank)},
      {"LOCAL_WORLD_SIZE", std::to_string(process.per_site)},
      {"FOMOE_PROCESSES", std::to_string(process.on_same_cores)},
      {"MASTER_ADDR", dotted(layout.sites.front().address)},
      {"MASTER_PORT", std::to_string(master_port)},
      {"GLOO_SOCKET_IFNAME", kInterface},
      {"NCCL_SOCKET_IFNAME", kInterface},
      {"FOMOE_LINKS", checked ? "emulated and checked" : "emulated"}};
  if (!report_path.empty()) variables.emplace_back("FOMOE_REPORT", report_path);
  return variables;
}

CoreShares share_cores(const std::vector<int>& allowed, int sites, int per_site) {
  const int rest = static_cast<int>(allowed.size()) - 1;  // all but the relay's core
  if (per_site < 1 || per_site > rest) {
    throw InputError("--cpus-per-site", std::to_string(per_site),
                     fmt::format("1 to {}, because {} cores are available and the relay uses one of them",
                                 rest, allowed.size()),
                     rest > 0 ? "--cpus-per-site 1" : "omit --cpus-per-site, which needs at least 2 cores");
  }
  CoreShares shares;
  shares.relay = allowed.front();
  shares.shared = sites * per_site > rest;
  for (int site = 0; site < sites; ++site) {
    std::vector<int>& cores = shares.sites.emplace_back();
    for (int core = 0; core < per_site; ++core)
      cores.push_back(allowed[static_cast<std::size_t>(1 + (site * per_site + core) % rest)]);
  }
  return shares;
}

}  // namespace fomoe::platforms::wan
