// What Engine keeps of SimGrid: links, routes, flows under way. For its own files only.
#pragma once
#include <algorithm>
#include <deque>
#include <map>
#include <string>
#include <vector>

#include "sim/engine.hpp"
#include "sim/simgrid_engine.hpp"
#include "sim/simgrid_version.hpp"

namespace fomoe::sim {

namespace s4u = simgrid::s4u;
using costmodel::NodeId;

// An unlimited fabric, as a number that SimGrid can divide by: a petabyte in a nanosecond.
inline constexpr double kFastestFabric_bytes_per_s = 1e24;

// Nor can it divide by zero: a link that is down moves a byte in eleven days.
inline constexpr double kDown_bytes_per_s = 1e-6;
inline double running_rate(double bytes_per_s) { return std::max(bytes_per_s, kDown_bytes_per_s); }

struct Engine::Simgrid {
  s4u::Engine& engine = simgrid_engine();
  // A flow under way: what SimGrid must not lose, and whom to call.
  struct Flight {
    s4u::CommPtr comm;
    NodeId from = 0, to = 0;
    double bytes = 0;
    Callback ended;
  };
  // What a pair's sender lets through: at times nothing. (In SimGrid 3.32 a second suspend() of one
  // communication has no effect.)
  struct Valve {
    s4u::Link* link = nullptr;
    bool open = true;
    double most_bytes_per_s = kFastestFabric_bytes_per_s;
    double landed_bytes = 0;  // of flows that have ended
    std::vector<Flight*> flights;
  };
  s4u::NetZone* zone = nullptr;
  std::vector<s4u::Link*> up, down;  // of sites
  std::vector<s4u::Link*> fabric;    // of sites: each flow inside one has it for itself
  std::vector<s4u::Link*> path;      // of pairs of sites, where the path itself limits; else nullptr
  std::vector<s4u::Link*> backbone;
  std::map<double, s4u::Link*> caps;       // of flows, by their rate
  std::map<Pair, const Flight*> in_order;  // where sends are buffered: the pair's only one
  std::vector<Valve> valves;           // of pairs of nodes whose senders are simulated one by one, else empty
  bool changing = false;               // some links do, over time
  std::deque<double> rates;            // of links that may change; addresses stay
  std::map<s4u::Link*, double*> rate;  // of these links
  std::vector<s4u::Host*> hosts;       // of nodes
  std::vector<char> routed;            // pairs of nodes that have sent before

  std::deque<Flight> flights;  // addresses stay
  std::vector<Flight*> free_flights;
  s4u::CommPtr landed;  // the last one: SimGrid still uses it while it calls back

  s4u::Link* link(const std::string& name, double bytes_per_s) {
    if (changing) return adjustable_link(name, bytes_per_s);
    return make_link(*zone, name, running_rate(bytes_per_s))->set_latency(0)->seal();
  }

  // SimGrid never lets a flow have more than its links had when it began. So these have all there is, and of
  // that a share: their rate as it is now.
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
  Valve& valve(std::size_t nodes, Pair pair) {
    return valves[static_cast<std::size_t>(pair.first) * nodes + static_cast<std::size_t>(pair.second)];
  }
  void set_rate(s4u::Link* of, double bytes_per_s) {
    *rate.at(of) = running_rate(std::min(bytes_per_s, kFastestFabric_bytes_per_s));
    of->set_bandwidth(kFastestFabric_bytes_per_s);  // has SimGrid ask for the share again
  }

  void route(const std::vector<costmodel::Node>& nodes, const platforms::Platform& platform, NodeId from,
             NodeId to, double cap_bytes_per_s) {
    const auto f = static_cast<std::size_t>(from), t = static_cast<std::size_t>(to);
    char& known = routed[f * hosts.size() + t];
    if (known) return;
    known = 1;
    const auto a = static_cast<std::size_t>(nodes[f].site), b = static_cast<std::size_t>(nodes[t].site);
    std::vector<s4u::LinkInRoute> links = {s4u::LinkInRoute(a == b ? fabric[a] : up[a])};
    if (a != b && path[a * up.size() + b] != nullptr) links.emplace_back(path[a * up.size() + b]);
    const platforms::Path& between = platform.paths[a * up.size() + b];
    if (a != b && between.backbone >= 0)
      links.emplace_back(backbone[static_cast<std::size_t>(between.backbone)]);
    if (a != b) links.emplace_back(down[b]);
    if (const auto found = caps.find(cap_bytes_per_s); a != b && found != caps.end())
      links.emplace_back(found->second);
    if (a != b && !valves.empty()) links.emplace_back(valves[f * hosts.size() + t].link);
    add_route(*zone, hosts[f], hosts[t], links);
  }

  Flight* flight() {
    if (free_flights.empty()) return &flights.emplace_back();
    Flight* reused = free_flights.back();
    free_flights.pop_back();
    return reused;
  }
};

}  // namespace fomoe::sim
