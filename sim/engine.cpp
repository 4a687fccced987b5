#include "sim/engine.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <simgrid/kernel/Timer.hpp>
#include <simgrid/s4u.hpp>
#include <stdexcept>
#include <string>
#include <utility>

#include "sim/simgrid_engine.hpp"

namespace fomoe::sim {

namespace s4u = simgrid::s4u;
using costmodel::NodeId;

namespace {

// An unlimited fabric, as a number that SimGrid can divide by: a petabyte in a nanosecond.
constexpr double kFastestFabric_bytes_per_s = 1e24;

// Nor can it divide by zero: a link that is down moves a byte in eleven days.
constexpr double kDown_bytes_per_s = 1e-6;
double running_rate(double bytes_per_s) { return std::max(bytes_per_s, kDown_bytes_per_s); }

double& rate_of(platforms::Platform& platform, const platforms::LinkChange& change) {
  const auto from = static_cast<std::size_t>(change.from);
  switch (change.link) {
    case platforms::LinkChange::Link::uplink:
      return platform.sites[from].uplink_bytes_per_s;
    case platforms::LinkChange::Link::downlink:
      return platform.sites[from].downlink_bytes_per_s;
    case platforms::LinkChange::Link::path:
      return platform.path(change.from, change.to).bandwidth_bytes_per_s;
    case platforms::LinkChange::Link::backbone:
      return platform.backbones[from].bandwidth_bytes_per_s;
  }
  throw std::logic_error("a link of no kind");
}

}  // namespace

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
    return zone->create_link(name, running_rate(bytes_per_s))->set_latency(0)->seal();
  }

  // SimGrid never lets a flow have more than its links had when it began. So these have all there is, and of
  // that a share: their rate as it is now.
  s4u::Link* adjustable_link(const std::string& name, double bytes_per_s) {
    double* now = &rates.emplace_back(running_rate(std::min(bytes_per_s, kFastestFabric_bytes_per_s)));
    s4u::Link* made = zone->create_link(name, kFastestFabric_bytes_per_s)
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
    zone->add_route(hosts[f]->get_netpoint(), hosts[t]->get_netpoint(), nullptr, nullptr, links, false);
  }

  Flight* flight() {
    if (free_flights.empty()) return &flights.emplace_back();
    Flight* reused = free_flights.back();
    free_flights.pop_back();
    return reused;
  }
};

Engine::Engine(const std::vector<costmodel::Node>& nodes, platforms::Platform raw,
               const costmodel::NetworkModel& network, std::uint64_t seed, costmodel::Probes probes)
    : nodes_(nodes),
      at_first_(std::move(raw)),
      platform_(at_first_),
      network_(network),
      simulates_senders_(probes == costmodel::Probes::apart &&
                         network.congestion_control == costmodel::CongestionControl::bbr),
      probe_clock_(around_probes()),
      sender_rates_(around_rates()),
      send_buffers_(around_buffers()),
      flow_start_(nodes, platform_, network, seed),
      simgrid_(std::make_unique<Simgrid>()) {
  Simgrid& sg = *simgrid_;
  sg.zone = s4u::create_full_zone("wan");
  const platforms::Platform& platform = platform_;
  sg.changing = !platform.changes.empty();
  const int sites = platform.size();
  for (int i = 0; i < sites; ++i) {
    const platforms::Site& site = platform.sites[static_cast<std::size_t>(i)];
    sg.up.push_back(sg.link("up-" + std::to_string(i), site.uplink_bytes_per_s));
    sg.down.push_back(sg.link("down-" + std::to_string(i), site.downlink_bytes_per_s));
    sg.fabric.push_back(sg.zone
                            ->create_link("fabric-" + std::to_string(i),
                                          std::min(site.fabric_bytes_per_s, kFastestFabric_bytes_per_s))
                            ->set_sharing_policy(s4u::Link::SharingPolicy::FATPIPE)
                            ->set_latency(0)
                            ->seal());
  }
  sg.path.assign(platform.paths.size(), nullptr);
  std::vector<char> changing(platform.paths.size(), 0);
  for (const platforms::LinkChange& change : platform.changes) {
    if (change.link == platforms::LinkChange::Link::path)
      changing[static_cast<std::size_t>(change.from * sites + change.to)] = 1;
  }
  // A path that is as fast as a port at one of its ends limits nothing.
  for (std::size_t pair = 0; pair < platform.paths.size(); ++pair) {
    const std::size_t a = pair / platform.sites.size(), b = pair % platform.sites.size();
    const double bytes_per_s = platform.paths[pair].bandwidth_bytes_per_s;
    const double ports =
        std::min(platform.sites[a].uplink_bytes_per_s, platform.sites[b].downlink_bytes_per_s);
    if (a == b || (!changing[pair] && (bytes_per_s >= ports && platform.changes.empty()))) continue;
    if (!changing[pair] && !std::isfinite(bytes_per_s)) continue;
    sg.path[pair] = sg.link("path-" + std::to_string(a) + "-" + std::to_string(b),
                            std::min(bytes_per_s, kFastestFabric_bytes_per_s));
  }
  for (std::size_t i = 0; i < platform.backbones.size(); ++i)
    sg.backbone.push_back(
        sg.link("backbone-" + std::to_string(i), platform.backbones[i].bandwidth_bytes_per_s));
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
  for (std::size_t pair = 0; simulates_senders_ && pair < nodes.size() * nodes.size(); ++pair)
    sg.valves.emplace_back().link =
        sg.adjustable_link("valve-" + std::to_string(pair), kFastestFabric_bytes_per_s);
  sg.zone->seal();
  // Routes are added when a pair first sends: a table of all pairs of 1,000 sites would cost 2 s and 0.7 GB.
  sg.routed.assign(nodes.size() * nodes.size(), 0);

  s4u::Comm::on_completion_cb([this](const auto& activity) {
    auto* flight = static_cast<const s4u::Comm&>(activity).template get_data<Simgrid::Flight>();
    Callback ended = std::move(flight->ended);
    flow_start_.ended(flight->from, flight->to, flight->bytes, now());
    const Pair pair{flight->from, flight->to};
    if (paces(pair)) {
      Simgrid::Valve& valve = simgrid_->valve(nodes_.size(), pair);
      valve.landed_bytes += flight->bytes;
      valve.flights.erase(std::find(valve.flights.begin(), valve.flights.end(), flight));
      probe_clock_.flow_ended(pair);
      sender_rates_.flow_ended(pair);
    }
    simgrid_->landed = std::move(flight->comm);
    simgrid_->free_flights.push_back(flight);
    ended();
    drain();
  });
}

Engine::~Engine() = default;

void Engine::prepare() { (void)simgrid_engine(); }

double Engine::now() const { return s4u::Engine::get_clock() - start_s_; }

void Engine::restart() {
  start_s_ = s4u::Engine::get_clock();
  platform_ = at_first_;
  for (const platforms::LinkChange& change : platform_.changes) {
    if (change.bandwidth_bytes_per_s) set_rate(change, rate_of(platform_, change));
  }
  flow_start_.restart();
  send_buffers_.restart();
  probe_clock_.restart();
  sender_rates_.restart();
  stopped_ = false;
}

double Engine::wait_s(NodeId from, NodeId to, std::int64_t bytes, const Beside& beside) {
  return flow_start_.wait_s(from, to, bytes, send_buffers_.landed_bytes({from, to}), beside, now());
}

void Engine::after(double delay_s, Callback callback) {
  simgrid::kernel::timer::Timer::set(s4u::Engine::get_clock() + delay_s,
                                     [this, callback = std::move(callback)] {
                                       callback();
                                       drain();
                                     });
}

double Engine::latency_s(NodeId from, NodeId to) const {
  return platform_
      .path(nodes_[static_cast<std::size_t>(from)].site, nodes_[static_cast<std::size_t>(to)].site)
      .latency_s;
}

void Engine::send(NodeId from, NodeId to, std::int64_t bytes, Callback arrived, Callback taken) {
  if (!buffers_sends()) return fly(from, to, bytes, std::move(arrived));
  send_buffers_.send({from, to}, bytes, std::move(arrived), std::move(taken));
}

void Engine::fly(NodeId from, NodeId to, std::int64_t bytes, Callback ended) {
  if (!platform_.changes.empty()) refuse_dead_links(from, to);
  simgrid_->route(nodes_, platform_, from, to,
                  simgrid_->caps.empty() ? 0 : flow_start_.cap_bytes_per_s(from, to));
  Simgrid::Flight* flight = simgrid_->flight();
  flight->from = from;
  flight->to = to;
  flight->bytes = static_cast<double>(bytes);
  flight->ended = std::move(ended);
  flight->comm = s4u::Comm::sendto_init(simgrid_->hosts[static_cast<std::size_t>(from)],
                                        simgrid_->hosts[static_cast<std::size_t>(to)]);
  flight->comm->set_payload_size(static_cast<std::uint64_t>(bytes));
  flight->comm->set_data(flight);
  flight->comm->start();
  if (buffers_sends()) simgrid_->in_order[{from, to}] = flight;
  if (!paces({from, to})) return;
  simgrid_->valve(nodes_.size(), {from, to}).flights.push_back(flight);
  probe_clock_.flow_began({from, to});
  sender_rates_.flow_began({from, to});
}

bool Engine::paces(Pair pair) const { return simulates_senders_ && leaves_site(pair.first, pair.second); }

ProbeClock::Surroundings Engine::around_probes() {
  return {[this] { return now(); },
          [this](double delay_s, Callback callback) { after(delay_s, std::move(callback)); },
          [this](Pair pair) { return round_trip_s(pair); },
          [this](Pair pair, bool open) {
            sender_rates_.paused(pair, !open);
            simgrid_->valve(nodes_.size(), pair).open = open;
            set_valve(pair);
          }};
}

SenderRates::Surroundings Engine::around_rates() {
  return {[this] { return now(); },
          [this](double delay_s, Callback callback) { after(delay_s, std::move(callback)); },
          [this](Pair pair) { return round_trip_s(pair); },
          [this](int site) { return platform_.sites[static_cast<std::size_t>(site)].uplink_bytes_per_s; },
          [this](Pair pair) { return flow_start_.draw(pair.first, pair.second) * 2 - 1; },
          [this](Pair pair) {
            const Simgrid::Valve& valve = simgrid_->valve(nodes_.size(), pair);
            double bytes = valve.landed_bytes;
            for (const Simgrid::Flight* flight : valve.flights)
              bytes += flight->bytes - flight->comm->get_remaining();
            return bytes;
          },
          [this](Pair pair) { return sites(pair); },
          [this](Pair pair, double bytes_per_s) {
            simgrid_->valve(nodes_.size(), pair).most_bytes_per_s = bytes_per_s;
            set_valve(pair);
          }};
}

SendBuffers::Surroundings Engine::around_buffers() {
  return {[this] { return now(); },
          [this](double delay_s, Callback callback) { after(delay_s, std::move(callback)); },
          [this](Pair pair, std::int64_t bytes, Callback ended) {
            fly(pair.first, pair.second, bytes, std::move(ended));
          },
          [this](Pair pair) {
            const Simgrid::Flight* flight = simgrid_->in_order.at(pair);
            return flight->bytes - flight->comm->get_remaining();
          },
          [this](Pair pair) { return fastest_bytes_per_s(pair); },
          [this](Pair pair) { return flow_start_.send_buffer_bytes(pair.first, pair.second); }};
}

double Engine::fastest_bytes_per_s(Pair pair) const {
  const auto [from, to] = sites(pair);
  const platforms::Site& sender = platform_.sites[static_cast<std::size_t>(from)];
  if (from == to) return std::min(sender.fabric_bytes_per_s, kFastestFabric_bytes_per_s);
  const platforms::Path& path = platform_.path(from, to);
  const double between =
      path.backbone < 0
          ? path.bandwidth_bytes_per_s
          : std::min(path.bandwidth_bytes_per_s,
                     platform_.backbones[static_cast<std::size_t>(path.backbone)].bandwidth_bytes_per_s);
  return std::min({sender.uplink_bytes_per_s, between,
                   platform_.sites[static_cast<std::size_t>(to)].downlink_bytes_per_s,
                   flow_start_.cap_bytes_per_s(pair.first, pair.second), kFastestFabric_bytes_per_s});
}

void Engine::set_valve(Pair pair) {
  const Simgrid::Valve& valve = simgrid_->valve(nodes_.size(), pair);
  simgrid_->set_rate(valve.link, valve.open ? valve.most_bytes_per_s : kDown_bytes_per_s);
}

std::pair<int, int> Engine::sites(Pair pair) const {
  return {nodes_[static_cast<std::size_t>(pair.first)].site,
          nodes_[static_cast<std::size_t>(pair.second)].site};
}

double Engine::round_trip_s(Pair pair) const {
  return latency_s(pair.first, pair.second) + latency_s(pair.second, pair.first);
}

// One timer at a time, so that a trace that repeats for ever ends with the last flow.
void Engine::schedule_change(std::size_t index, double period_start_s) {
  if (platform_.changes.empty() || stopped_) return;
  if (index == platform_.changes.size()) {
    if (platform_.changes_period_s == 0) return;
    index = 0;
    period_start_s += platform_.changes_period_s;
  }
  const double at_s = period_start_s + platform_.changes[index].at_s;
  after(std::max(0.0, at_s - now()), [this, index, period_start_s] {
    if (stopped_) return;
    change(platform_.changes[index]);
    schedule_change(index + 1, period_start_s);
  });
}

void Engine::set_rate(const platforms::LinkChange& of, double bytes_per_s) {
  using Link = platforms::LinkChange::Link;
  rate_of(platform_, of) = bytes_per_s;
  const auto from = static_cast<std::size_t>(of.from);
  s4u::Link* link = nullptr;
  switch (of.link) {
    case Link::uplink:
      link = simgrid_->up[from];
      break;
    case Link::downlink:
      link = simgrid_->down[from];
      break;
    case Link::path:
      link = simgrid_->path[from * platform_.sites.size() + static_cast<std::size_t>(of.to)];
      break;
    case Link::backbone:
      link = simgrid_->backbone[from];
      break;
  }
  if (link != nullptr) simgrid_->set_rate(link, bytes_per_s);
}

void Engine::change(const platforms::LinkChange& change) {
  if (change.latency_s) platform_.path(change.from, change.to).latency_s = *change.latency_s;
  if (!change.bandwidth_bytes_per_s) return;
  sender_rates_.while_links_change([&] { set_rate(change, *change.bandwidth_bytes_per_s); });
  if (*change.bandwidth_bytes_per_s > 0) return;
  for (const Simgrid::Flight& flight : simgrid_->flights) {
    if (flight.comm) refuse_dead_links(flight.from, flight.to);
  }
}

// A link at rate 0 carries on when the trace says so; one that nothing will bring back carries nothing.
void Engine::refuse_dead_links(NodeId from, NodeId to) const {
  using Link = platforms::LinkChange::Link;
  const int a = nodes_[static_cast<std::size_t>(from)].site, b = nodes_[static_cast<std::size_t>(to)].site;
  if (a == b || platform_.changes_period_s > 0) return;
  const auto refuse_if_dead = [&](Link link, int i, int j, double rate) {
    if (rate > 0) return;
    for (const platforms::LinkChange& later : platform_.changes) {
      if (later.at_s > now() && later.link == link && later.from == i && later.to == j &&
          later.bandwidth_bytes_per_s.value_or(0) > 0)
        return;
    }
    throw std::runtime_error(
        "the run cannot finish: " + platforms::link_name(platform_, link, i, j) + " is down for ever from " +
        std::to_string(now()) + " s on, and " + platform_.sites[static_cast<std::size_t>(a)].name +
        " has something to send to " + platform_.sites[static_cast<std::size_t>(b)].name);
  };
  const platforms::Path& path = platform_.path(a, b);
  refuse_if_dead(Link::uplink, a, a, platform_.sites[static_cast<std::size_t>(a)].uplink_bytes_per_s);
  refuse_if_dead(Link::downlink, b, b, platform_.sites[static_cast<std::size_t>(b)].downlink_bytes_per_s);
  refuse_if_dead(Link::path, a, b, path.bandwidth_bytes_per_s);
  if (path.backbone >= 0)
    refuse_if_dead(Link::backbone, path.backbone, path.backbone,
                   platform_.backbones[static_cast<std::size_t>(path.backbone)].bandwidth_bytes_per_s);
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
  schedule_change(0, 0);
  simgrid_->engine.run();
}

}  // namespace fomoe::sim
