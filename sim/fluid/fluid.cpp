#include "sim/fluid/fluid.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <string>
#include <utility>

#include "platforms/each_path.hpp"
#include "sim/fluid/fluid_simgrid.hpp"

namespace fomoe::sim {

namespace {
/// Whether it makes a difference that data take their links when they are sent, and not when they arrive.
bool departures_matter_in(const platforms::Platform& platform) {
  return !platform.changes.empty() || platforms::latencies_differ(platform);
}

}  // namespace

Fluid::Fluid(const std::vector<costmodel::Node>& nodes, platforms::Platform platform,
             const std::map<Pair, double>& caps)
    : nodes_(nodes),
      described_(std::move(platform)),
      platform_(described_),
      departures_matter_(departures_matter_in(platform_)),
      simgrid_(std::make_unique<Simgrid>()) {
  make_links(caps);
  s4u::Comm::on_completion_cb([this](const auto& activity) {
    auto* flight = static_cast<const s4u::Comm&>(activity).template get_data<Flight>();
    // SimGrid 3.32 reports a cancelled flow twice: as cancelled, within cancel(), and then as failed.
    if (activity.get_state() == s4u::Activity::State::CANCELED) return;
    const bool failed = activity.get_state() == s4u::Activity::State::FAILED;
    const Callback ended = std::move(flight->ended);
    simgrid_->landed = std::move(flight->comm);
    simgrid_->free_flights.push_back(flight);
    if (failed) return;
    ended();
    drain();
  });
}

void Fluid::make_links(const std::map<Pair, double>& caps) {
  Simgrid& sg = *simgrid_;
  sg.zone = make_zone(sg.engine, "wan");
  const platforms::Platform& platform = platform_;
  sg.changing = !platform.changes.empty();
  const int sites = platform.size();
  for (int i = 0; i < sites; ++i) {
    const platforms::Site& site = platform.sites[static_cast<std::size_t>(i)];
    sg.up.push_back(sg.link("up-" + std::to_string(i), site.uplink_bytes_per_s));
    sg.down.push_back(sg.link("down-" + std::to_string(i), site.downlink_bytes_per_s));
    if (departures_matter_ && !sg.changing)
      sg.down_alone.push_back(sg.fat_link("down-alone-" + std::to_string(i), site.downlink_bytes_per_s));
    sg.fabric.push_back(sg.fat_link("fabric-" + std::to_string(i), site.fabric_bytes_per_s));
  }
  std::set<std::pair<int, int>> changing;
  for (const platforms::LinkChange& change : platform.changes) {
    if (change.link == platforms::LinkChange::Link::path) changing.insert({change.from, change.to});
  }
  // While links are constant, a path at least as fast as the slower of its sender's uplink and its receiver's
  // downlink limits no flow, so no SimGrid link is created for it. If any link changes, a path has no SimGrid
  // link only if it is unlimited and does not change itself.
  const bool all_unlimited = platform.paths.alike() && std::isinf(platform.path(0, 0).bandwidth_bytes_per_s);
  for (int a = 0; a < sites && !(all_unlimited && changing.empty()); ++a) {
    for (int b = 0; b < sites; ++b) {
      const double bytes_per_s = platform.path(a, b).bandwidth_bytes_per_s;
      const double ports = std::min(platform.sites[static_cast<std::size_t>(a)].uplink_bytes_per_s,
                                    platform.sites[static_cast<std::size_t>(b)].downlink_bytes_per_s);
      const bool changes = changing.contains({a, b});
      if (a == b || (!changes && (bytes_per_s >= ports && platform.changes.empty()))) continue;
      if (!changes && !std::isfinite(bytes_per_s)) continue;
      sg.path[{a, b}] = sg.link("path-" + std::to_string(a) + "-" + std::to_string(b),
                                std::min(bytes_per_s, kFastestFabric_bytes_per_s));
    }
  }
  for (std::size_t i = 0; i < platform.shared_links.size(); ++i) {
    const std::string name = "shared-" + std::to_string(i);
    const double bytes_per_s = platform.shared_links[i].bandwidth_bytes_per_s;
    sg.shared.push_back(platform.shared_links[i].per_flow ? sg.fat_link(name, bytes_per_s)
                                                          : sg.link(name, bytes_per_s));
  }
  for (std::size_t n = 0; n < nodes_.size(); ++n) {
    const std::string number = std::to_string(n);
    sg.hosts.push_back(make_host(*sg.zone, "node-" + number, 1.0)->seal());
    if (!departures_matter_) continue;
    sg.way_out.push_back(make_host(*sg.zone, "way-out-" + number, 1.0)->seal());
    sg.way_in.push_back(make_host(*sg.zone, "way-in-" + number, 1.0)->seal());
  }
  for (const auto& [pair, bytes_per_s] : caps)
    sg.caps[pair] = sg.link("cap-" + std::to_string(pair.first) + "-" + std::to_string(pair.second),
                            std::min(bytes_per_s, kFastestFabric_bytes_per_s));
  sg.zone->seal();
  // A pair gets its route when it first sends. A table of all pairs of 1,000 sites would cost 2 s and 0.7 GB.
}

Fluid::~Fluid() = default;

void Fluid::prepare() { (void)simgrid_engine(); }

double Fluid::clock_step_s() const {
  constexpr double kSteps = 4;
  return kSteps * std::numeric_limits<double>::epsilon() * s4u::Engine::get_clock();
}

double Fluid::now() const { return s4u::Engine::get_clock() - start_s_; }

void Fluid::restart(double clock_s, bool held) {
  start_s_ = s4u::Engine::get_clock();
  changes_at_start_s_ = clock_s;
  released_at_s_ = held ? std::nullopt : std::optional(0.0);
  reset_links();
  stopped_ = false;
}

void Fluid::after(double delay_s, Callback callback) {
  simgrid::kernel::timer::Timer::set(s4u::Engine::get_clock() + delay_s,
                                     [this, callback = std::move(callback)] {
                                       callback();
                                       drain();
                                     });
}

// SimGrid ends a flow if its clock meets the flow's end within 1e-12 s (simgrid_engine.cpp); otherwise it
// takes the flow as lost. It adds (end − clock) to its clock. This gives exactly `end` only if end ≤ 2·clock,
// since the difference of two doubles within a factor of two of each other is exact (Sterbenz). While flows
// are under way, a timer therefore goes off at twice the clock.
void Fluid::limit_next_advance() {
  if (stopped_ || simgrid_->at_twice_the_clock != nullptr) return;
  const double clock_s = std::max(s4u::Engine::get_clock(), 1e-9);
  simgrid_->at_twice_the_clock = simgrid::kernel::timer::Timer::set(2 * clock_s, [this] {
    simgrid_->at_twice_the_clock = nullptr;
    if (simgrid_->flights.size() > simgrid_->free_flights.size()) limit_next_advance();
  });
}

// The timer would make run() advance the clock after the last flow has ended.
void Fluid::stop() {
  stopped_ = true;
  if (simgrid_->at_twice_the_clock != nullptr) simgrid_->at_twice_the_clock->remove();
  simgrid_->at_twice_the_clock = nullptr;
}

double Fluid::next_other_event_s() const {
  if (simgrid_->flights.size() > simgrid_->free_flights.size()) return now();
  const double next_s = simgrid::kernel::timer::Timer::next();
  return next_s < 0 ? std::numeric_limits<double>::infinity() : next_s - start_s_;
}

double Fluid::latency_s(NodeId from, NodeId to) const {
  return platform_
      .path(nodes_[static_cast<std::size_t>(from)].site, nodes_[static_cast<std::size_t>(to)].site)
      .latency_s;
}

Flight* Fluid::start(NodeId from, NodeId to, std::int64_t bytes, Part part, Callback ended) {
  if (!platform_.changes.empty()) refuse_dead_links(from, to);
  Simgrid& sg = *simgrid_;
  const auto f = static_cast<std::size_t>(from), t = static_cast<std::size_t>(to);
  s4u::Host* begin = sg.hosts[f];
  s4u::Host* end = sg.hosts[t];
  if (part == Part::whole) {
    sg.route(nodes_, platform_, from, to);
  } else {
    sg.route_in_parts(nodes_, platform_, from, to);
    if (part == Part::to_receiver) end = sg.way_out[t];
    if (part == Part::at_receiver) begin = sg.way_in[f];
  }
  Flight* started = sg.flight();
  started->from = from;
  started->to = to;
  started->bytes = bytes;
  started->ended = std::move(ended);
  started->comm = s4u::Comm::sendto_init(begin, end);
  started->comm->set_payload_size(static_cast<std::uint64_t>(bytes));
  started->comm->set_data(started);
  started->comm->start();
  limit_next_advance();
  return started;
}

std::int64_t Fluid::cancel(Flight* flight) {
  const auto moved = flight->bytes - std::llround(flight->comm->get_remaining());
  flight->comm->cancel();
  return std::clamp<std::int64_t>(moved, 0, flight->bytes);
}

void Fluid::cancel_all() {
  for (Flight& flight : simgrid_->flights) {
    // A flight that has ended has no communication; one that was cancelled keeps it for another moment.
    if (flight.comm && flight.comm->get_state() != s4u::Activity::State::CANCELED) cancel(&flight);
  }
}

void Fluid::set_cap(Pair pair, double bytes_per_s) {
  simgrid_->set_rate(simgrid_->caps.at(pair), bytes_per_s);
}

void Fluid::drain() {
  while (!ready_callbacks_.empty()) {
    const Callback next = std::move(ready_callbacks_.front());
    ready_callbacks_.pop_front();
    next();
  }
  if (event_passed_) event_passed_();
}

void Fluid::run() {
  after(0, [] {});  // runs the callbacks that were queued by schedule_now() before the start
  if (released_at_s_) schedule_change(platforms::next_change(platform_, changes_at_start_s_));
  simgrid_->engine.run();
}

}  // namespace fomoe::sim
