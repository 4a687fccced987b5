// Private part of Engine: its SimGrid objects (links, routes and flows in flight). Only Engine's own files
// include this header.
#pragma once
#include <algorithm>
#include <deque>
#include <map>
#include <string>
#include <vector>

#include "sim/engine/engine.hpp"
#include "sim/engine/simgrid_engine.hpp"
#include "sim/engine/simgrid_version.hpp"

namespace fomoe::sim {

namespace s4u = simgrid::s4u;
using costmodel::NodeId;

// Stands for an unlimited rate, because SimGrid cannot calculate with infinity: a petabyte per nanosecond.
inline constexpr double kFastestFabric_bytes_per_s = 1e24;

// Stands for the rate of a link that is down, because SimGrid cannot divide by zero: one byte in eleven days.
inline constexpr double kDown_bytes_per_s = 1e-6;
inline double running_rate(double bytes_per_s) { return std::max(bytes_per_s, kDown_bytes_per_s); }

struct Engine::Simgrid {
  s4u::Engine& engine = simgrid_engine();
  // A flow in flight: it keeps the SimGrid communication alive, and holds the callback for its end.
  struct Flight {
    s4u::CommPtr comm;
    NodeId from = 0, to = 0;
    double bytes = 0;
    Callback ended;
  };
  // A link that limits the rate of one (sender, receiver) pair, at times to nothing. A link is used because
  // in SimGrid 3.32 a second suspend() of one communication has no effect.
  struct Valve {
    s4u::Link* link = nullptr;
    bool open = true;
    double most_bytes_per_s = kFastestFabric_bytes_per_s;
    double delivered_bytes = 0;  // sum over the pair's flows that have ended
    std::vector<Flight*> flights;
  };
  s4u::NetZone* zone = nullptr;
  std::vector<s4u::Link*> up, down;  // [site]
  std::vector<s4u::Link*> fabric;    // [site]; every flow inside the site gets the full rate
  std::vector<s4u::Link*> path;      // [from site · sites + to site]; nullptr if the path limits nothing
  std::vector<s4u::Link*> backbone;
  std::map<double, s4u::Link*> caps;       // limits of single flows, by their rate in bytes per second
  std::map<Pair, const Flight*> in_order;  // the only flow in flight of each pair, if sends are buffered
  std::vector<Valve> valves;  // [from node · nodes + to node]; empty unless senders are simulated one by one
  bool changing = false;      // whether any link changes over time
  std::deque<double> rates;   // bytes per second of adjustable links; a deque keeps addresses valid
  std::map<s4u::Link*, double*> rate;  // the entry of `rates` for each adjustable link
  std::vector<s4u::Host*> hosts;       // [node]
  std::vector<char> routed;            // [from node · nodes + to node]: whether the route exists

  std::deque<Flight> flights;  // a deque keeps addresses valid
  std::vector<Flight*> free_flights;
  s4u::CommPtr landed;  // the flow that ended last; SimGrid still uses it during its callback

  s4u::Link* link(const std::string& name, double bytes_per_s) {
    if (changing) return adjustable_link(name, bytes_per_s);
    return make_link(*zone, name, running_rate(bytes_per_s))->set_latency(0)->seal();
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
  Valve& valve(std::size_t nodes, Pair pair) {
    return valves[static_cast<std::size_t>(pair.first) * nodes + static_cast<std::size_t>(pair.second)];
  }
  void set_rate(s4u::Link* of, double bytes_per_s) {
    *rate.at(of) = running_rate(std::min(bytes_per_s, kFastestFabric_bytes_per_s));
    of->set_bandwidth(kFastestFabric_bytes_per_s);  // makes SimGrid evaluate the policy again
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
