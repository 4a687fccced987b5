#include "sim/engine/engine.hpp"

#include <algorithm>
#include <cmath>
#include <simgrid/kernel/Timer.hpp>
#include <string>
#include <utility>

#include "sim/engine/engine_simgrid.hpp"

namespace fomoe::sim {

namespace {

bool latencies_differ(const platforms::Platform& platform) {
  for (const platforms::LinkChange& change : platform.changes)
    if (change.latency_s) return true;
  std::optional<double> first;
  for (int a = 0; a < platform.size(); ++a) {
    for (int b = 0; b < platform.size(); ++b) {
      if (a == b) continue;
      const double latency_s = platform.path(a, b).latency_s;
      if (first && *first != latency_s) return true;
      first = latency_s;
    }
  }
  return false;
}

}  // namespace

Engine::Engine(const std::vector<costmodel::Node>& nodes, platforms::Platform raw,
               const costmodel::NetworkModel& network, std::uint64_t seed, costmodel::Senders senders)
    : nodes_(nodes),
      described_(std::move(raw)),
      platform_(described_),
      network_(network),
      simulates_senders_(senders == costmodel::Senders::one_by_one &&
                         network.congestion_control == costmodel::CongestionControl::bbr),
      probe_clock_(probe_environment()),
      sender_rates_(rate_environment()),
      send_buffers_(buffer_environment()),
      flow_start_(nodes, platform_, network, seed),
      simgrid_(std::make_unique<Simgrid>()) {
  Simgrid& sg = *simgrid_;
  sg.zone = make_zone(sg.engine, "wan");
  const platforms::Platform& platform = platform_;
  sg.changing = !platform.changes.empty();
  const int sites = platform.size();
  for (int i = 0; i < sites; ++i) {
    const platforms::Site& site = platform.sites[static_cast<std::size_t>(i)];
    sg.up.push_back(sg.link("up-" + std::to_string(i), site.uplink_bytes_per_s));
    sg.down.push_back(sg.link("down-" + std::to_string(i), site.downlink_bytes_per_s));
    sg.down_alone.push_back(
        make_link(*sg.zone, "down-alone-" + std::to_string(i),
                  running_rate(std::min(site.downlink_bytes_per_s, kFastestFabric_bytes_per_s)))
            ->set_sharing_policy(s4u::Link::SharingPolicy::FATPIPE)
            ->set_latency(0)
            ->seal());
    sg.fabric.push_back(make_link(*sg.zone, "fabric-" + std::to_string(i),
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
  // While links are constant, a path at least as fast as the slower of its sender's uplink and its receiver's
  // downlink limits no flow, so no SimGrid link is created for it. If any link changes, a path has no SimGrid
  // link only if it is unlimited and does not change itself.
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
  unequal_latencies_ = !simulates_senders_ && latencies_differ(platform);
  for (std::size_t n = 0; n < nodes.size(); ++n) {
    const std::string number = std::to_string(n);
    sg.hosts.push_back(make_host(*sg.zone, "node-" + number, 1.0)->seal());
    if (!unequal_latencies_) continue;
    sg.way_out.push_back(make_host(*sg.zone, "way-out-" + number, 1.0)->seal());
    sg.way_in.push_back(make_host(*sg.zone, "way-in-" + number, 1.0)->seal());
  }
  // A cap holds for each flow separately. It is a link of the policy FATPIPE, which gives every flow its full
  // rate; there is one for each distinct cap.
  for (std::size_t a = 0; (network.tcp_window_bytes || network.loss_rate) && a < nodes.size(); ++a) {
    for (std::size_t b = 0; b < nodes.size(); ++b) {
      const double cap = flow_start_.cap_bytes_per_s(static_cast<NodeId>(a), static_cast<NodeId>(b));
      if (a == b || !std::isfinite(cap) || sg.caps.count(cap)) continue;
      sg.caps[cap] = make_link(*sg.zone, "cap-" + std::to_string(sg.caps.size()), cap)
                         ->set_latency(0)
                         ->set_sharing_policy(s4u::Link::SharingPolicy::FATPIPE)
                         ->seal();
    }
  }
  for (std::size_t pair = 0; simulates_senders_ && pair < nodes.size() * nodes.size(); ++pair)
    sg.valves.emplace_back().link =
        sg.adjustable_link("valve-" + std::to_string(pair), kFastestFabric_bytes_per_s);
  sg.zone->seal();
  // A pair gets its route when it first sends. A table of all pairs of 1,000 sites would cost 2 s and 0.7 GB.
  sg.routed.assign(nodes.size() * nodes.size(), 0);
  if (unequal_latencies_) sg.routed_in_parts.assign(nodes.size() * nodes.size(), 0);

  s4u::Comm::on_completion_cb([this](const auto& activity) {
    auto* flight = static_cast<const s4u::Comm&>(activity).template get_data<Flight>();
    // SimGrid 3.32 reports a cancelled flow twice: as cancelled, within cancel(), and then as failed.
    if (activity.get_state() == s4u::Activity::State::CANCELED) return;
    if (activity.get_state() == s4u::Activity::State::FAILED) {
      simgrid_->landed = std::move(flight->comm);
      simgrid_->free_flights.push_back(flight);
      return;
    }
    Callback ended = std::move(flight->ended);
    if (flight->arrives) flow_start_.ended(flight->from, flight->to, flight->bytes, now());
    const Pair pair{flight->from, flight->to};
    if (paces(pair)) {
      Simgrid::Valve& valve = simgrid_->valve(nodes_.size(), pair);
      valve.delivered_bytes += flight->bytes;
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

void Engine::restart(double clock_s, bool held, std::uint64_t stream) {
  start_s_ = s4u::Engine::get_clock();
  changes_at_start_s_ = clock_s;
  released_at_s_ = held ? std::nullopt : std::optional(0.0);
  reset_links();
  flow_start_.restart(stream);
  send_buffers_.restart();
  probe_clock_.restart();
  sender_rates_.restart();
  stopped_ = false;
}

double Engine::wait_s(NodeId from, NodeId to, std::int64_t bytes, const ConcurrentFlows& concurrent) {
  return flow_start_.wait_s(from, to, bytes, send_buffers_.delivered_bytes({from, to}), concurrent, now());
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

void Engine::send(NodeId from, NodeId to, std::int64_t bytes, std::shared_ptr<Departure> departure,
                  Callback arrived, Callback taken) {
  if (buffers_sends())
    return send_buffers_.send({from, to}, bytes, std::move(departure), std::move(arrived), std::move(taken));
  if (departure) return arrive(std::move(departure), std::move(arrived));
  begin_flow(from, to, bytes, std::move(arrived));
}

void Engine::begin_flow(NodeId from, NodeId to, std::int64_t bytes, Callback ended) {
  if (!platform_.changes.empty()) refuse_dead_links(from, to);
  simgrid_->route(nodes_, platform_, from, to,
                  simgrid_->caps.empty() ? 0 : flow_start_.cap_bytes_per_s(from, to));
  Flight* flight = simgrid_->start(simgrid_->hosts[static_cast<std::size_t>(from)],
                                   simgrid_->hosts[static_cast<std::size_t>(to)], bytes, std::move(ended));
  flight->from = from;
  flight->to = to;
  if (buffers_sends()) simgrid_->in_order[{from, to}] = {flight, 0};
  if (!paces({from, to})) return;
  simgrid_->valve(nodes_.size(), {from, to}).flights.push_back(flight);
  probe_clock_.flow_began({from, to});
  sender_rates_.flow_began({from, to});
}

void Engine::drain() {
  while (!ready_callbacks_.empty()) {
    const Callback next = std::move(ready_callbacks_.front());
    ready_callbacks_.pop_front();
    next();
  }
}

void Engine::run() {
  after(0, [] {});  // runs the callbacks that were queued by schedule_now() before the start
  if (released_at_s_) schedule_change(platforms::next_change(platform_, changes_at_start_s_));
  simgrid_->engine.run();
}

}  // namespace fomoe::sim
