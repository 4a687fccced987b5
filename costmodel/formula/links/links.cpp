#include "costmodel/formula/links/links.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "costmodel/compose/ring_orders.hpp"
#include "costmodel/compute/site_times.hpp"
#include "costmodel/formula/links/owner_rings.hpp"
#include "costmodel/formula/links/region_links.hpp"
#include "costmodel/formula/links/shared_port.hpp"
#include "costmodel/plan/regions.hpp"
#include "costmodel/plan/site_shares.hpp"
#include "costmodel/value/cost.hpp"
#include "platforms/choose_sites.hpp"
#include "platforms/each_path.hpp"

namespace fomoe::costmodel {

namespace {

using platforms::Platform;

/// Whether the rate of a single connection was measured on the path: it includes what socket buffers do.
bool measured_connection(const platforms::Path& path) { return std::isfinite(path.connection_bytes_per_s); }

/// What the connections of a flow carry together, whatever their windows.
double rate_cap_bytes_per_s(const Platform& platform, const NetworkModel& network, int from, int to) {
  const platforms::Path& path = platform.path(from, to);
  return std::min(connections_of(network, path) * path.connection_bytes_per_s,
                  shared_cap_bytes_per_s(network, platform, from, to));
}

/// What windows leave to a flow, by flow_cap_bytes_per_s(). Where windows are counted, ConnectionWindow has
/// the send buffer.
double window_cap_bytes_per_s(const Platform& platform, const NetworkModel& network, int from, int to) {
  const platforms::Path& path = platform.path(from, to);
  NetworkModel terms = network;
  if (network.initial_window_bytes) terms.send_buffer_bytes.reset();
  return flow_cap_bytes_per_s(terms, path.latency_s + platform.path(to, from).latency_s, path);
}

Links between(const Platform& platform, const NetworkModel& network, int from, int to) {
  const platforms::Path& path = platform.path(from, to);
  return {platform.sites[static_cast<std::size_t>(from)].uplink_bytes_per_s,
          platform.sites[static_cast<std::size_t>(to)].downlink_bytes_per_s,
          path.bandwidth_bytes_per_s,
          path.latency_s,
          path.latency_s + platform.path(to, from).latency_s,
          window_cap_bytes_per_s(platform, network, from, to),
          from,
          to,
          static_cast<double>(connections_of(network, path)),
          measured_connection(path)};
}

// Whether no stage takes longer over `a` than over `b`.
bool never_slower(const Links& a, const Links& b) {
  return a.port_bytes_per_s() >= b.port_bytes_per_s() && a.path_bytes_per_s >= b.path_bytes_per_s &&
         a.latency_s <= b.latency_s && a.round_trip_s <= b.round_trip_s &&
         a.cap_bytes_per_s >= b.cap_bytes_per_s && (a.measured_connection || !b.measured_connection);
}

void add(std::vector<Links>& list, const Links& links) {
  if (std::any_of(list.begin(), list.end(), [&](const auto& other) { return never_slower(links, other); }))
    return;
  std::erase_if(list, [&](const auto& other) { return never_slower(other, links); });
  list.push_back(links);
}

// When the sites end a step in which each sends `bytes` to each other one, if they begin it at these times. A
// flow takes its sender's port when it is sent, and its receiver's one when it arrives. It ends when both
// ports have passed it on.
std::vector<double> step_ends_s(const Platform& platform, const std::vector<double>& begins_s, double bytes) {
  const std::size_t sites = begins_s.size();
  std::vector<double> ends(begins_s);
  std::vector<std::vector<PortFlow>> out(sites), in(sites);
  std::vector<std::vector<double>> latency_s(sites);  // of the flows that a site sends
  for (std::size_t from = 0; from < sites; ++from) {
    for (std::size_t to = 0; to < sites; ++to) {
      if (from == to) continue;
      const platforms::Path& path = platform.path(static_cast<int>(from), static_cast<int>(to));
      const double arrives_s = std::max(begins_s[from] + path.latency_s, begins_s[to]);
      out[from].push_back({arrives_s - path.latency_s, bytes, path.bandwidth_bytes_per_s});
      in[to].push_back({arrives_s, bytes, path.bandwidth_bytes_per_s});
      latency_s[from].push_back(path.latency_s);
    }
  }
  const auto other = [](std::size_t site, std::size_t k) { return k < site ? k : k + 1; };
  for (std::size_t site = 0; site < sites; ++site) {
    const std::vector<double> left_s = ends_s(out[site], platform.sites[site].uplink_bytes_per_s);
    const std::vector<double> received_s = ends_s(in[site], platform.sites[site].downlink_bytes_per_s);
    for (std::size_t k = 0; k + 1 < sites; ++k) {
      for (const std::size_t end : {site, other(site, k)})
        ends[end] = std::max({ends[end], left_s[k] + latency_s[site][k], received_s[k]});
    }
  }
  return ends;
}

}  // namespace

double direct_exchange_s(const Platform& platform, double steps, double pair_bytes) {
  // A site that ends early begins its next step, and its next round, early: the latency of its flows then
  // passes while others still transfer. After two exchanges the durations hardly change.
  const int whole_steps = std::max(1, static_cast<int>(std::lround(steps)));
  std::vector<double> times_s(platform.sites.size(), 0);
  double before_s = 0, after_s = 0;
  for (int exchange = 0; exchange < 3; ++exchange) {
    for (int step = 0; step < whole_steps; ++step) times_s = step_ends_s(platform, times_s, pair_bytes);
    before_s = after_s;
    after_s = *std::max_element(times_s.begin(), times_s.end());
  }
  return (after_s - before_s) * steps / whole_steps;
}

double star_s(const Platform& platform, double out_bytes, double back_bytes) {
  const platforms::Site& first = platform.sites[0];
  std::vector<PortFlow> out, back;
  for (int i = 1; i < platform.size(); ++i) {
    const platforms::Site& client = platform.sites[static_cast<std::size_t>(i)];
    const platforms::Path &there = platform.path(0, i), &home = platform.path(i, 0);
    out.push_back({0, out_bytes, std::min(client.downlink_bytes_per_s, there.bandwidth_bytes_per_s)});
    back.push_back(
        {home.latency_s, back_bytes, std::min(client.uplink_bytes_per_s, home.bandwidth_bytes_per_s)});
  }
  // A client computes its next steps as soon as it has received, so its own way out and back adds up.
  const std::vector<double> left_s = ends_s(out, first.uplink_bytes_per_s);
  for (std::size_t i = 0; i < back.size(); ++i)
    back[i].start_s += left_s[i] + platform.path(0, static_cast<int>(i) + 1).latency_s;
  const std::vector<double> returned_s = ends_s(back, first.downlink_bytes_per_s);
  return returned_s.empty() ? 0 : *std::max_element(returned_s.begin(), returned_s.end());
}

namespace {

bool limits_each_connection(const Platform& platform) {
  return std::any_of(platform.shared_links.begin(), platform.shared_links.end(),
                     [](const platforms::SharedLink& link) { return link.per_flow; });
}

/// The effective platform. Caps of flows are in the rates of its paths; those of windows are not, where
/// windows are counted.
Platform limited_platform(const Platform& raw, const NetworkModel& network) {
  Platform platform = effective_platform(raw, network);
  const bool caps = network.tcp_window_bytes || network.receive_buffer_bytes || network.loss_rate ||
                    limits_connections(network, platform) || limits_each_connection(platform);
  if (!caps) return platform;
  const auto cap_bytes_per_s = [&](int from, int to) {
    const double rate = rate_cap_bytes_per_s(platform, network, from, to);
    return network.initial_window_bytes ? rate
                                        : std::min(rate, window_cap_bytes_per_s(platform, network, from, to));
  };
  const auto limit = [](double cap) {
    return [cap](platforms::Path& path) {
      path.bandwidth_bytes_per_s = std::min(path.bandwidth_bytes_per_s, cap);
    };
  };
  if (platform.paths.alike()) {
    platform.paths.change_all(limit(cap_bytes_per_s(0, 1)));
    return platform;
  }
  for (int a = 0; a < platform.size(); ++a)
    for (int b = 0; b < platform.size(); ++b)
      if (a != b) platform.change_path(a, b, limit(cap_bytes_per_s(a, b)));
  return platform;
}

/// The slowest of each.
Links slowest_of(const Platform& platform, const NetworkModel& network) {
  constexpr double kNone = platforms::kUnlimited;
  Links all{kNone, kNone, kNone, 0, 0, kNone, -1, -1, kNone, true};
  for (const platforms::Site& site : platform.sites) {
    all.uplink_bytes_per_s = std::min(all.uplink_bytes_per_s, site.uplink_bytes_per_s);
    all.downlink_bytes_per_s = std::min(all.downlink_bytes_per_s, site.downlink_bytes_per_s);
  }
  platforms::each_path(platform, [&](int from, int to, const platforms::Path& path) {
    all.path_bytes_per_s = std::min(all.path_bytes_per_s, path.bandwidth_bytes_per_s);
    all.latency_s = std::max(all.latency_s, path.latency_s);
    all.round_trip_s = std::max(all.round_trip_s, path.latency_s + platform.path(to, from).latency_s);
    all.cap_bytes_per_s = std::min(all.cap_bytes_per_s, window_cap_bytes_per_s(platform, network, from, to));
    all.measured_connection = all.measured_connection && measured_connection(path);
    all.connections = std::min(all.connections, static_cast<double>(connections_of(network, path)));
  });
  return all;
}

void add_ring(LinkSets& sets, const Platform& platform, const NetworkModel& network,
              const std::vector<int>& ring) {
  for (std::size_t i = 0; i < ring.size() && ring.size() > 1; ++i) {
    const Links hop = between(platform, network, ring[i], ring[(i + 1) % ring.size()]);
    // Beside other rings, a hop that is never the slowest one may decide.
    sets.owner_hops.empty() ? add(sets.ring, hop) : sets.ring.push_back(hop);
  }
}

/// Adds the links of sites that differ.
void add_differing(LinkSets& sets, Platform platform, const NetworkModel& network,
                   const std::vector<int>& ring) {
  add_ring(sets, platform, network, ring);
  if (sets.windows != nullptr) {
    platforms::each_path(platform, [&](int from, int to, const platforms::Path& /*path*/) {
      add(sets.pairs, between(platform, network, from, to));
      if (from == 0 || to == 0) add(sets.first_site, between(platform, network, from, to));
    });
  }
  sets.sites = std::make_shared<const Platform>(std::move(platform));
}

/// The links inside the regions of the scenario, and between them; null if it has none.
std::shared_ptr<const RegionLinks> region_links(const Scenario& scenario, const Platform& platform,
                                                RingOrders& orders, const LinkSets& all) {
  const int regions = scenario.strategy.regions, sites = platform.size();
  if (regions < 2 || sites % regions != 0 || sites == regions) return nullptr;
  std::vector<std::vector<NodeId>> members(static_cast<std::size_t>(regions));
  const std::vector<int> region_of = regions_of_sites(scenario.platform, regions);
  for (int site = 0; site < sites; ++site)
    members[static_cast<std::size_t>(region_of[static_cast<std::size_t>(site)])].push_back(site);
  const auto links_among = [&](const std::vector<NodeId>& nodes) {
    LinkSets sets;
    sets.payload_s_per_byte = all.payload_s_per_byte;
    sets.windows = all.windows;
    Platform chosen = platforms::chosen_sites(platform, nodes);
    sets.all = slowest_of(chosen, scenario.network);
    sets.ring_order.resize(nodes.size());
    std::iota(sets.ring_order.begin(), sets.ring_order.end(), 0);
    const std::vector<int> ring = sets.ring_order;
    add_differing(sets, std::move(chosen), scenario.network, ring);
    return SiteGroup{nodes, std::move(sets)};
  };
  RegionLinks links;
  for (const std::vector<NodeId>& region : members) {
    std::vector<NodeId> ring = region;
    orders.apply(ring);
    links.regions.push_back(links_among(ring));
  }
  for (std::size_t rank = 0; rank < members.front().size(); ++rank) {
    std::vector<NodeId> same_rank;
    for (const std::vector<NodeId>& region : members) same_rank.push_back(region[rank]);
    links.ranks.push_back(links_among(same_rank));
  }
  return std::make_shared<const RegionLinks>(std::move(links));
}

}  // namespace

LinkSets link_sets(const Scenario& scenario) {
  const NetworkModel& network = scenario.network;
  Platform platform = limited_platform(scenario.platform, network);
  LinkSets sets;
  if (const auto rate = network.payload_bytes_per_s) sets.payload_s_per_byte = 1 / *rate;
  if (network.initial_window_bytes) sets.windows = std::make_shared<const NetworkModel>(network);
  sets.all = slowest_of(platform, network);
  if (scenario.platform.store) {
    const Platform with_store = limited_platform(platforms::with_store_as_site(scenario.platform), network);
    StoreLinks store = store_links(with_store, network);
    for (std::size_t i = 0; i < store.sites.size(); ++i)
      store.sites[i].cap_bytes_per_s =
          window_cap_bytes_per_s(with_store, network, static_cast<int>(i), with_store.size() - 1);
    sets.store = std::make_shared<const StoreLinks>(std::move(store));
  }
  const bool shared = !scenario.platform.shared_links.empty();
  if (!platforms::links_differ(scenario.platform) && !shared && !egress_by_destination(scenario.prices))
    return sets;
  std::vector<NodeId> ring(static_cast<std::size_t>(platform.size()));
  std::iota(ring.begin(), ring.end(), 0);
  RingOrders orders(scenario);
  orders.apply(ring);
  sets.ring_order = ring;
  sets.owner_hops = owner_hops(scenario.strategy, effective_overlap(scenario), ring, orders);
  sets.regions = region_links(scenario, platform, orders, sets);
  if (!platforms::links_differ(scenario.platform) && !shared) {
    add_ring(sets, platform, network, ring);
    return sets;
  }
  for (const OwnerHop& hop : sets.owner_hops)
    sets.owners.push_back({between(platform, network, hop.from, hop.to), hop.share, hop.ring});
  add_differing(sets, std::move(platform), network, ring);
  return sets;
}

double stage_s(const Stage& stage, const Links& links) {
  const double at_path_s = stage.pair_bytes / links.path_bytes_per_s;
  const double latencies_s = stage.latency_hops * links.latency_s;
  if (!stage.star) {
    const double sending_s = std::max(stage.bytes / links.port_bytes_per_s(), at_path_s);
    if (stage.beside.bytes == 0 || links.latency_s == 0) return latencies_s + sending_s;
    return side_by_side_s(stage, ring_steps(stage, links), stage.bytes / sending_s);
  }
  const auto one_way_s = [&](double at_first_bytes_per_s, double at_other_bytes_per_s) {
    const double at_first_s = stage.bytes / at_first_bytes_per_s,
                 at_other_s = stage.pair_bytes / at_other_bytes_per_s;
    return std::max(std::max(at_first_s, at_other_s), at_path_s);
  };
  return latencies_s +
         (1.0 - stage.out_share) * one_way_s(links.downlink_bytes_per_s, links.uplink_bytes_per_s) +
         stage.out_share * one_way_s(links.uplink_bytes_per_s, links.downlink_bytes_per_s);
}

namespace {

double known_exchange_s(const LinkSets& sets, double steps, double pair_bytes) {
  constexpr std::size_t kMostKept = 16;
  for (const LinkSets::Exchange& known : sets.exchanges) {
    if (known.steps == steps && known.pair_bytes == pair_bytes) return known.seconds;
  }
  if (sets.exchanges.size() == kMostKept) sets.exchanges.clear();
  const double seconds = direct_exchange_s(*sets.sites, steps, pair_bytes);
  sets.exchanges.push_back({steps, pair_bytes, seconds});
  return seconds;
}

// Bytes that each of the links which several paths share carries. A byte that crosses a link twice counts
// twice.
class SharedBytes {
 public:
  explicit SharedBytes(const Platform& platform)
      : platform_(platform), carried_(platform.shared_links.size(), 0.0) {}

  void add(int from, int to, double bytes) {
    for (const int link : platform_.shared_by(from, to)) carried_[static_cast<std::size_t>(link)] += bytes;
  }
  [[nodiscard]] double longest_s() const {
    double longest = 0;
    for (std::size_t k = 0; k < carried_.size(); ++k) {
      const platforms::SharedLink& link = platform_.shared_links[k];
      if (!link.per_flow) longest = std::max(longest, carried_[k] / link.bandwidth_bytes_per_s);
    }
    return longest;
  }

 private:
  const Platform& platform_;
  std::vector<double> carried_;
};

/// Seconds in which the links that several paths share have passed on all bytes of the stage.
double over_shared_s(const Stage& stage, const LinkSets& sets) {
  const Platform& platform = *sets.sites;
  const double latencies_s = stage.latency_hops * sets.all.latency_s;
  SharedBytes bytes(platform), back(platform);
  if (stage.between == Between::ring || stage.between == Between::owners) {
    const std::vector<int>& ring = sets.ring_order;
    for (std::size_t i = 0; i < ring.size(); ++i)
      bytes.add(ring[i], ring[(i + 1) % ring.size()], stage.bytes - stage.beside.bytes);
    for (const OwnerHop& hop : sets.owner_hops) bytes.add(hop.from, hop.to, hop.share * stage.beside.bytes);
    return latencies_s + bytes.longest_s();
  }
  for (int from = 0; from < platform.size(); ++from) {
    for (int to = 0; to < platform.size(); ++to) {
      if (from == to) continue;
      if (stage.between == Between::pairs) bytes.add(from, to, stage.pair_bytes);
      if (stage.between != Between::first_site) continue;
      if (from == 0) bytes.add(from, to, stage.out_share * stage.pair_bytes);
      if (to == 0) back.add(from, to, (1 - stage.out_share) * stage.pair_bytes);
    }
  }
  return latencies_s + bytes.longest_s() + back.longest_s();
}

double over_own_links_s(const Stage& stage, const LinkSets& sets) {
  if (stage.between == Between::store && sets.store != nullptr)
    return store_exchange_s(*sets.store, stage.objects);
  if (sets.sites == nullptr || stage.between == Between::any) return stage_s(stage, sets.all);
  if (stage.between == Between::ring) {
    double longest_s = 0;
    for (const Links& hop : sets.ring) longest_s = std::max(longest_s, stage_s(stage, hop));
    return longest_s;
  }
  if (stage.between == Between::owners)
    return side_by_side_s(stage, ring_steps(stage, sets), slowest_bytes_per_s(stage, sets));
  const double bytes = stage.pair_bytes;
  return stage.between == Between::pairs
             ? known_exchange_s(sets, stage.latency_hops, bytes / std::max(1.0, stage.latency_hops))
             : star_s(*sets.sites, stage.out_share * bytes, (1 - stage.out_share) * bytes);
}

double among_sites_s(const Stage& stage, const LinkSets& sets) {
  const double seconds = over_own_links_s(stage, sets);
  if (sets.sites == nullptr || sets.sites->shared_links.empty() || stage.between == Between::any)
    return seconds;
  return std::max(seconds, over_shared_s(stage, sets));
}

}  // namespace

double sending_s(const Stage& stage, const LinkSets& sets) {
  if (stage.among == Among::all_sites || sets.regions == nullptr) return among_sites_s(stage, sets);
  double sum_s = 0;
  for (const StagePart& part : parts_of(stage, sets)) {
    double longest_s = 0;
    for (const LinkSets* links : part.links)
      longest_s = std::max(longest_s, among_sites_s(part.stage, *links));
    sum_s += longest_s;
  }
  return sum_s;
}

}  // namespace fomoe::costmodel
