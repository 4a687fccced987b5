#include "sim/engine.hpp"

#include <algorithm>
#include <cmath>
#include <string>

namespace fomoe::sim {

namespace {

// An unlimited fabric, as a number that SimGrid can divide by: a petabyte in a nanosecond.
constexpr double kFastestFabric_bytes_per_s = 1e24;

// SimGrid's defaults are a TCP model fitted to clusters. Ours is a fluid: every flow gets its max-min fair
// share of each link it crosses, at once, whatever its latency. Latencies are therefore kept out of the
// engine (it would weight shares by 1/latency) and applied as a delay before the flow; a flow has no window
// cap.
int configured(char** argv_storage) {
  static const char* const settings[] = {
      "fomoe",
      "--cfg=network/model:CM02",
      "--cfg=network/crosstraffic:0",
      "--cfg=network/TCP-gamma:1e15",
      "--cfg=network/weight-S:0",
      "--cfg=network/latency-factor:1",
      "--cfg=network/bandwidth-factor:1",
      "--cfg=surf/precision:1e-12",
      "--cfg=contexts/stack-size:128",
      "--log=root.thresh:error",
  };
  int count = 0;
  for (const char* setting : settings) argv_storage[count++] = const_cast<char*>(setting);
  return count;
}

struct Arguments {
  char* argv[16] = {};
  int argc = 0;
  char** values = argv;
  Arguments() { argc = configured(argv); }
};

}  // namespace

Engine::Engine(const std::vector<costmodel::Node>& nodes, const platforms::Platform& platform)
    : engine_([] {
        static Arguments arguments;
        return simgrid::s4u::Engine(&arguments.argc, arguments.values);
      }()),
      nodes_(nodes),
      platform_(platform) {
  namespace s4u = simgrid::s4u;
  auto* zone = s4u::create_full_zone("wan");
  std::vector<s4u::Link*> up, down, fabric;
  for (std::size_t i = 0; i < platform.sites.size(); ++i) {
    const platforms::Site& site = platform.sites[i];
    up.push_back(
        zone->create_link("up-" + std::to_string(i), site.uplink_bytes_per_s)->set_latency(0)->seal());
    down.push_back(
        zone->create_link("down-" + std::to_string(i), site.downlink_bytes_per_s)->set_latency(0)->seal());
    // Flows inside a site share nothing with each other, nor with what leaves it.
    fabric.push_back(zone->create_link("fabric-" + std::to_string(i),
                                       std::min(site.fabric_bytes_per_s, kFastestFabric_bytes_per_s))
                         ->set_sharing_policy(s4u::Link::SharingPolicy::FATPIPE)
                         ->set_latency(0)
                         ->seal());
  }
  for (std::size_t n = 0; n < nodes.size(); ++n) {
    hosts_.push_back(zone->create_host("node-" + std::to_string(n), 1.0)->seal());
  }
  for (std::size_t a = 0; a < nodes.size(); ++a) {
    for (std::size_t b = 0; b < nodes.size(); ++b) {
      if (a == b) continue;
      const int from = nodes[a].site, to = nodes[b].site;
      if (from == to) {
        zone->add_route(hosts_[a]->get_netpoint(), hosts_[b]->get_netpoint(), nullptr, nullptr,
                        {s4u::LinkInRoute(fabric[static_cast<std::size_t>(from)])}, false);
        continue;
      }
      std::vector<s4u::LinkInRoute> route = {s4u::LinkInRoute(up[static_cast<std::size_t>(from)])};
      const double path_bytes_per_s = platform.path(from, to).bandwidth_bytes_per_s;
      if (std::isfinite(path_bytes_per_s)) {
        auto* path =
            zone->create_link("path-" + std::to_string(a) + "-" + std::to_string(b), path_bytes_per_s);
        route.emplace_back(path->set_latency(0)->seal());
      }
      route.emplace_back(down[static_cast<std::size_t>(to)]);
      zone->add_route(hosts_[a]->get_netpoint(), hosts_[b]->get_netpoint(), nullptr, nullptr, route, false);
    }
  }
  zone->seal();
}

double Engine::latency_s(costmodel::NodeId from, costmodel::NodeId to) const {
  const int a = nodes_[static_cast<std::size_t>(from)].site, b = nodes_[static_cast<std::size_t>(to)].site;
  return a == b ? 0 : platform_.path(a, b).latency_s;
}

}  // namespace fomoe::sim
