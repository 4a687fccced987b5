// A flow whose competitors have other latencies takes its uplink when it is sent and its downlink when it
// arrives, one latency later. It has three parts. From its departure until its first byte arrives, it takes
// all links but those at the receiver, at most at the downlink's rate. The bytes that it sends in this time
// are in flight. Then it takes all of its links at once, at one rate, since a sender follows the rate at
// which its bytes arrive (self-clocking; Jacobson 1988, "Congestion avoidance and control"). When the last
// byte has left, the bytes in flight still take the links at the receiver, and the last one of them arrives
// no earlier than it was sent. A flow without competitors thus ends after its latency + bytes ÷ rate.
#include "sim/transport/transport.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace fomoe::sim {

using costmodel::NodeId;
using Part = Fluid::Part;

struct Departure {
  NodeId from = 0, to = 0;
  std::int64_t bytes = 0;
  Flight* flight = nullptr;  // nullptr if all bytes have left, or if sending has stopped
  std::int64_t sent = 0;     // bytes that have left when sending ended
  double sent_at_s = 0;      // when sending ended
  Transport::Callback left;  // called once, when the last byte has left
  void leave() {
    if (left) std::exchange(left, nullptr)();
  }
};

namespace {

bool latencies_change(const platforms::Platform& platform) {
  return std::any_of(platform.changes.begin(), platform.changes.end(),
                     [](const auto& change) { return change.latency_s.has_value(); });
}

}  // namespace

Transport::Transport(const std::vector<costmodel::Node>& nodes, const platforms::Platform& platform,
                     const costmodel::NetworkModel& network, std::uint64_t seed)
    : nodes_(nodes),
      network_(network),
      connections_(nodes, network, seed,
                   [this]() -> const platforms::Platform& { return fluid_.platform(); }),
      fluid_(nodes, platform, caps(platform)),
      sending_(platform.sites.size(), 0),
      receiving_(platform.sites.size(), 0) {
  if (!latencies_change(platform)) return;
  fluid_.on_latency_change([this, pairs = caps(platform)] {
    for (const auto& [pair, at_start] : pairs)
      fluid_.set_cap(pair, connections_.cap_bytes_per_s(pair.first, pair.second));
  });
}

void Transport::restart(double clock_s, bool held, std::uint64_t stream) {
  fluid_.restart(clock_s, held);
  connections_.restart(stream);
  std::fill(sending_.begin(), sending_.end(), 0);
  std::fill(receiving_.begin(), receiving_.end(), 0);
}

Wait Transport::wait(NodeId from, NodeId to, std::int64_t bytes, const ConcurrentFlows& concurrent) {
  if (fluid_.leaves_site(from, to)) {
    ++sending_[site(from)];
    ++receiving_[site(to)];
  }
  return connections_.wait(from, to, bytes, concurrent, fluid_.now());
}

double Transport::longer_ramp_s(NodeId from, NodeId to, Ramp& ramp) {
  return connections_.longer_ramp_s(from, to, ramp, {sending_[site(from)], receiving_[site(to)]});
}

void Transport::cancel_all() {
  fluid_.cancel_all();
  std::fill(sending_.begin(), sending_.end(), 0);
  std::fill(receiving_.begin(), receiving_.end(), 0);
  connections_.close_all();
}

std::map<Fluid::Pair, double> Transport::caps(const platforms::Platform& platform) const {
  std::map<Pair, double> caps;
  const bool all = !platform.changes.empty();  // any link may become faster than the cap
  for (NodeId from = 0; from < static_cast<NodeId>(nodes_.size()); ++from) {
    for (NodeId to = 0; to < static_cast<NodeId>(nodes_.size()); ++to) {
      const int a = nodes_[static_cast<std::size_t>(from)].site,
                b = nodes_[static_cast<std::size_t>(to)].site;
      if (a == b) continue;
      const double round_trip_s = platform.path(a, b).latency_s + platform.path(b, a).latency_s;
      const double cap =
          costmodel::flow_cap_bytes_per_s(network_, round_trip_s, platform.path(a, b).connection_bytes_per_s);
      if (cap == platforms::kUnlimited) continue;
      if (all || cap < platform.route_bytes_per_s(a, b)) caps[{from, to}] = cap;
    }
  }
  return caps;
}

void Transport::begin(Pair pair, std::int64_t bytes, Part part, Callback ended) {
  fluid_.start(pair.first, pair.second, bytes, part, [this, pair, bytes, ended = std::move(ended)] {
    connections_.ended(pair.first, pair.second, bytes, fluid_.now());
    ended();
  });
}

void Transport::send(NodeId from, NodeId to, std::int64_t bytes, std::shared_ptr<Departure> departure,
                     Callback arrived) {
  Callback ended = std::move(arrived);
  if (fluid_.leaves_site(from, to))
    ended = [this, from, to, inner = std::move(ended)] {
      --sending_[site(from)];
      --receiving_[site(to)];
      inner();
    };
  if (departure) return arrive(*departure, std::move(ended));
  begin({from, to}, bytes, Part::whole, std::move(ended));
}

std::shared_ptr<Departure> Transport::depart(NodeId from, NodeId to, std::int64_t bytes, Callback left) {
  auto departure = std::make_shared<Departure>();
  departure->left = std::move(left);
  departure->from = from;
  departure->to = to;
  departure->bytes = bytes;
  departure->flight = fluid_.start(from, to, bytes, Part::to_receiver, [this, departure] {
    departure->flight = nullptr;
    departure->sent = departure->bytes;
    departure->sent_at_s = fluid_.now();
    departure->leave();
  });
  return departure;
}

void Transport::hold(Departure& departure) {
  if (departure.flight == nullptr) return;
  departure.sent = fluid_.cancel(std::exchange(departure.flight, nullptr));
  departure.sent_at_s = fluid_.now();
}

void Transport::arrive(Departure& departure, Callback arrived) {
  hold(departure);
  const Pair pair{departure.from, departure.to};
  const std::int64_t in_flight = departure.sent, rest = departure.bytes - in_flight;
  const auto last_part = [this, pair, in_flight, rest, sent_at_s = departure.sent_at_s,
                          arrived = std::move(arrived), left = std::exchange(departure.left, nullptr)] {
    if (left) left();
    if (in_flight == 0) return arrived();
    const double last_byte_s =
        (rest == 0 ? sent_at_s : fluid_.now()) + fluid_.latency_s(pair.first, pair.second);
    begin(pair, in_flight, Part::at_receiver, [this, last_byte_s, arrived] {
      if (last_byte_s <= fluid_.now()) return arrived();
      fluid_.after(last_byte_s - fluid_.now(), arrived);
    });
  };
  if (rest == 0) return last_part();
  begin(pair, rest, Part::whole, last_part);
}

}  // namespace fomoe::sim
