// Private part of Fluid: its SimGrid objects (links, routes and flows in flight). Only Fluid's own files
// include this header.
#pragma once
#include <algorithm>
#include <deque>
#include <map>
#include <simgrid/kernel/Timer.hpp>
#include <string>
#include <unordered_set>
#include <vector>

#include "sim/fluid/fluid.hpp"
#include "sim/fluid/simgrid_engine.hpp"
#include "sim/fluid/simgrid_version.hpp"

namespace fomoe::sim {

namespace s4u = simgrid::s4u;
using costmodel::NodeId;

// Stands for an unlimited rate, because SimGrid cannot calculate with infinity: a petabyte per nanosecond.
inline constexpr double kFastestFabric_bytes_per_s = 1e24;

// Stands for the rate of a link that is down, because SimGrid cannot divide by zero: one byte in eleven days.
inline constexpr double kDown_bytes_per_s = 1e-6;
inline double running_rate(double bytes_per_s) { return std::max(bytes_per_s, kDown_bytes_per_s); }

// A flow in flight: it keeps the SimGrid communication alive, and holds the callback for its end.
struct Flight {
  s4u::CommPtr comm;
  NodeId from = 0, to = 0;
  std::int64_t bytes = 0;
  Fluid::Callback ended;
};

struct Fluid::Simgrid {
  s4u::Engine& engine = simgrid_engine();
  s4u::NetZone* zone = nullptr;
  std::vector<s4u::Link*> up, down;                // [site]
  std::vector<s4u::Link*> fabric;                  // [site]; every flow inside the site gets the full rate
  std::map<std::pair<int, int>, s4u::Link*> path;  // by sites, of the paths that limit something
  std::vector<s4u::Link*> shared;                  // [shared link of the platform]
  std::map<Pair, s4u::Link*> caps;                 // limits of connections, by TCP's window or loss
  bool changing = false;                           // whether any link changes over time
  std::deque<double> rates;            // bytes per second of adjustable links; a deque keeps addresses valid
  std::map<s4u::Link*, double*> rate;  // the entry of `rates` for each adjustable link
  std::vector<s4u::Host*> hosts;       // [node]
  std::unordered_set<std::uint64_t> routed,
      routed_in_parts;  // from node · nodes + to node: routes that exist
  // Ends of routes that have a part of a pair's links. Empty if latencies are equal.
  std::vector<s4u::Host*> way_out;  // [receiver]: all links but the downlink
  std::vector<s4u::Host*> way_in;   // [sender]: the downlink
  std::vector<s4u::Link*>
      down_alone;  // [site]; every flow gets the full rate of the downlink, if it is constant

  std::deque<Flight> flights;  // a deque keeps addresses valid
  std::vector<Flight*> free_flights;
  simgrid::kernel::timer::Timer* at_twice_the_clock = nullptr;  // see Fluid::limit_next_advance
  s4u::CommPtr landed;  // the flow that ended last; SimGrid still uses it during its callback

  s4u::Link* link(const std::string& name, double bytes_per_s) {
    if (changing) return adjustable_link(name, bytes_per_s);
    return make_link(*zone, name, running_rate(bytes_per_s))->set_latency(0)->seal();
  }

  // A link that gives every flow its full rate.
  s4u::Link* fat_link(const std::string& name, double bytes_per_s) {
    return make_link(*zone, name, running_rate(std::min(bytes_per_s, kFastestFabric_bytes_per_s)))
        ->set_sharing_policy(s4u::Link::SharingPolicy::FATPIPE)
        ->set_latency(0)
        ->seal();
  }

  // SimGrid never gives a flow more than the bandwidth that its links had when the flow began. An adjustable
  // link therefore has an unlimited bandwidth, and a nonlinear sharing policy that returns its current rate.
  s4u::Link* adjustable_link(const std::string& name, double bytes_per_s) {
    double* now = &rates.emplace_back(running_rate(std::min(bytes_per_s, kFastestFabric_bytes_per_s)));
    s4u::Link* made = make_link(*zone, name, kFastestFabric_bytes_per_s)
                          ->set_latency(0)
                          ->set_sharing_policy(s4u::Link::SharingPolicy::NONLINEAR,
                                               [now](double /*capacity*/, int /*flows*/) { return *now; })
                          ->seal();
    rate[made] = now;
    return made;
  }
  void set_rate(s4u::Link* of, double bytes_per_s) {
    *rate.at(of) = running_rate(std::min(bytes_per_s, kFastestFabric_bytes_per_s));
    of->set_bandwidth(kFastestFabric_bytes_per_s);  // makes SimGrid evaluate the policy again
  }

  // The links between two nodes of different sites, except the downlink and shared links at the receiver.
  [[nodiscard]] std::vector<s4u::LinkInRoute> way_to_downlink(const std::vector<costmodel::Node>& nodes,
                                                              const platforms::Platform& platform,
                                                              NodeId from, NodeId to) const {
    const int a = nodes[static_cast<std::size_t>(from)].site, b = nodes[static_cast<std::size_t>(to)].site;
    std::vector<s4u::LinkInRoute> links = {s4u::LinkInRoute(up[static_cast<std::size_t>(a)])};
    if (const auto found = path.find({a, b}); found != path.end()) links.emplace_back(found->second);
    const auto on_path = platform.shared_by(a, b);
    for (const int link : on_path.first(on_path.size() - platform.shared_at_receiver(a, b).size()))
      links.emplace_back(shared[static_cast<std::size_t>(link)]);
    if (const auto found = caps.find({from, to}); found != caps.end()) links.emplace_back(found->second);
    return links;
  }

  // The links at the receiver.
  [[nodiscard]] std::vector<s4u::LinkInRoute> at_receiver(const platforms::Platform& platform, int from_site,
                                                          int to_site) const {
    std::vector<s4u::LinkInRoute> links;
    for (const int link : platform.shared_at_receiver(from_site, to_site))
      links.emplace_back(shared[static_cast<std::size_t>(link)]);
    links.emplace_back(down[static_cast<std::size_t>(to_site)]);
    return links;
  }

  void route(const std::vector<costmodel::Node>& nodes, const platforms::Platform& platform, NodeId from,
             NodeId to) {
    const auto f = static_cast<std::size_t>(from), t = static_cast<std::size_t>(to);
    if (!routed.insert(f * hosts.size() + t).second) return;
    const auto a = static_cast<std::size_t>(nodes[f].site), b = static_cast<std::size_t>(nodes[t].site);
    std::vector<s4u::LinkInRoute> links;
    if (a == b) {
      links.emplace_back(fabric[a]);
    } else {
      links = way_to_downlink(nodes, platform, from, to);
      for (const s4u::LinkInRoute& link : at_receiver(platform, static_cast<int>(a), static_cast<int>(b)))
        links.push_back(link);
    }
    add_route(*zone, hosts[f], hosts[t], links);
  }

  // The links of a pair in two parts.
  void route_in_parts(const std::vector<costmodel::Node>& nodes, const platforms::Platform& platform,
                      NodeId from, NodeId to) {
    const auto f = static_cast<std::size_t>(from), t = static_cast<std::size_t>(to);
    if (!routed_in_parts.insert(f * hosts.size() + t).second) return;
    const auto to_site = static_cast<std::size_t>(nodes[t].site);
    std::vector<s4u::LinkInRoute> links = way_to_downlink(nodes, platform, from, to);
    // A sender does not send faster than the receiver's downlink can be.
    if (!changing) links.emplace_back(down_alone[to_site]);
    add_route(*zone, hosts[f], way_out[t], links);
    add_route(*zone, way_in[f], hosts[t], at_receiver(platform, nodes[f].site, static_cast<int>(to_site)));
  }

  Flight* flight() {
    if (free_flights.empty()) return &flights.emplace_back();
    Flight* reused = free_flights.back();
    free_flights.pop_back();
    return reused;
  }
};

}  // namespace fomoe::sim
