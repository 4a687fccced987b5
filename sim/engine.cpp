#include "sim/engine.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <simgrid/kernel/Timer.hpp>
#include <simgrid/s4u.hpp>
#include <string>
#include <utility>

namespace fomoe::sim {

namespace s4u = simgrid::s4u;
using costmodel::NodeId;

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

s4u::Engine make_engine() {
  static Arguments arguments;
  return s4u::Engine(&arguments.argc, arguments.values);
}

}  // namespace

struct Engine::Simgrid {
  s4u::Engine engine = make_engine();
  s4u::NetZone* zone = nullptr;
  std::vector<s4u::Link*> up, down;   // of sites
  std::vector<s4u::Link*> fabric;     // of sites: each flow inside one has it for itself
  std::vector<s4u::Link*> path;       // of pairs of sites, where the path itself limits; else nullptr
  std::map<double, s4u::Link*> caps;  // of flows, by their rate
  std::vector<s4u::Host*> hosts;      // of nodes
  std::vector<char> routed;           // pairs of nodes that have sent before

  // A flow under way: what SimGrid must not lose, and whom to call.
  struct Flight {
    s4u::CommPtr comm;
    NodeId from = 0, to = 0;
    Callback ended;
  };
  std::deque<Flight> flights;  // addresses stay
  std::vector<Flight*> free_flights;
  s4u::CommPtr landed;  // the last one: SimGrid still uses it while it calls back

  void route(const std::vector<costmodel::Node>& nodes, NodeId from, NodeId to, double cap_bytes_per_s) {
    const auto f = static_cast<std::size_t>(from), t = static_cast<std::size_t>(to);
    char& known = routed[f * hosts.size() + t];
    if (known) return;
    known = 1;
    const auto a = static_cast<std::size_t>(nodes[f].site), b = static_cast<std::size_t>(nodes[t].site);
    std::vector<s4u::LinkInRoute> links = {s4u::LinkInRoute(a == b ? fabric[a] : up[a])};
    if (a != b && !path.empty() && path[a * up.size() + b]) links.emplace_back(path[a * up.size() + b]);
    if (a != b) links.emplace_back(down[b]);
    if (const auto found = caps.find(cap_bytes_per_s); a != b && found != caps.end())
      links.emplace_back(found->second);
    zone->add_route(hosts[f]->get_netpoint(), hosts[t]->get_netpoint(), nullptr, nullptr, links, false);
  }

  Flight* flight() {
    if (free_flights.empty()) return &flights.emplace_back();
    Flight* reused = free_flights.back();
    free_flights.pop_back();
    return reused;
  }
};

Engine::Engine(const std::vector<costmodel::Node>& nodes, const platforms::Platform& platform,
               const costmodel::NetworkModel& network, std::uint64_t seed)
    : nodes_(nodes),
      network_(network),
      flow_start_(nodes, platform, network, seed),
      simgrid_(std::make_unique<Simgrid>()) {
  Simgrid& sg = *simgrid_;
  sg.zone = s4u::create_full_zone("wan");
  const auto link = [&](const std::string& name, double bytes_per_s) {
    return sg.zone->create_link(name, bytes_per_s)->set_latency(0)->seal();
  };
  const int sites = platform.size();
  for (int i = 0; i < sites; ++i) {
    const platforms::Site& site = platform.sites[static_cast<std::size_t>(i)];
    sg.up.push_back(link("up-" + std::to_string(i), site.uplink_bytes_per_s));
    sg.down.push_back(link("down-" + std::to_string(i), site.downlink_bytes_per_s));
    sg.fabric.push_back(sg.zone
                            ->create_link("fabric-" + std::to_string(i),
                                          std::min(site.fabric_bytes_per_s, kFastestFabric_bytes_per_s))
                            ->set_sharing_policy(s4u::Link::SharingPolicy::FATPIPE)
                            ->set_latency(0)
                            ->seal());
  }
  for (int a = 0; a < sites; ++a) {
    for (int b = 0; b < sites; ++b) {
      const double bytes_per_s = platform.path(a, b).bandwidth_bytes_per_s;
      if (a == b || !std::isfinite(bytes_per_s)) continue;
      sg.path.resize(platform.paths.size(), nullptr);
      sg.path[static_cast<std::size_t>(a * sites + b)] =
          link("path-" + std::to_string(a) + "-" + std::to_string(b), bytes_per_s);
    }
  }
  for (std::size_t n = 0; n < nodes.size(); ++n) {
    sg.hosts.push_back(sg.zone->create_host("node-" + std::to_string(n), 1.0)->seal());
  }
  // A cap holds for each flow by itself: a link that does not share ("fat pipe"), one for each different cap.
  for (std::size_t a = 0; (network.tcp_window_bytes || network.loss_rate) && a < nodes.size(); ++a) {
    for (std::size_t b = 0; b < nodes.size(); ++b) {
      const double cap = flow_start_.cap_bytes_per_s(static_cast<NodeId>(a), static_cast<NodeId>(b));
      if (a == b || !std::isfinite(cap) || sg.caps.count(cap)) continue;
      sg.caps[cap] = sg.zone->create_link("cap-" + std::to_string(sg.caps.size()), cap)
                         ->set_latency(0)
                         ->set_sharing_policy(s4u::Link::SharingPolicy::FATPIPE)
                         ->seal();
    }
  }
  sg.zone->seal();
  // Routes are added when a pair first sends: a table of all pairs of 1,000 sites would cost 2 s and 0.7 GB.
  sg.routed.assign(nodes.size() * nodes.size(), 0);

  s4u::Comm::on_completion_cb([this](const auto& activity) {
    auto* flight = static_cast<const s4u::Comm&>(activity).template get_data<Simgrid::Flight>();
    Callback ended = std::move(flight->ended);
    flow_start_.ended(flight->from, flight->to, now());
    simgrid_->landed = std::move(flight->comm);
    simgrid_->free_flights.push_back(flight);
    ended();
    drain();
  });
}

Engine::~Engine() = default;

double Engine::now() const { return s4u::Engine::get_clock(); }

double Engine::wait_s(NodeId from, NodeId to, std::int64_t bytes) {
  return flow_start_.wait_s(from, to, bytes, now());
}

void Engine::after(double delay_s, Callback callback) {
  simgrid::kernel::timer::Timer::set(now() + delay_s, [this, callback = std::move(callback)] {
    callback();
    drain();
  });
}

void Engine::send(NodeId from, NodeId to, std::int64_t bytes, Callback ended) {
  simgrid_->route(nodes_, from, to, simgrid_->caps.empty() ? 0 : flow_start_.cap_bytes_per_s(from, to));
  Simgrid::Flight* flight = simgrid_->flight();
  flight->from = from;
  flight->to = to;
  flight->ended = std::move(ended);
  flight->comm = s4u::Comm::sendto_init(simgrid_->hosts[static_cast<std::size_t>(from)],
                                        simgrid_->hosts[static_cast<std::size_t>(to)]);
  flight->comm->set_payload_size(static_cast<std::uint64_t>(bytes));
  flight->comm->set_data(flight);
  flight->comm->start();
}

void Engine::drain() {
  while (!soon_.empty()) {
    const Callback next = std::move(soon_.front());
    soon_.pop_front();
    next();
  }
}

void Engine::run() {
  after(0, [] {});  // drains what was asked for before the start
  simgrid_->engine.run();
}

}  // namespace fomoe::sim
