// A message whose competitors have other latencies takes its uplink when it is sent and its downlink when it
// arrives, one latency later. It has three parts. From its departure until its first byte arrives, it takes
// all links but those at the receiver, at most at the downlink's rate. The bytes that it sends in this time
// are in flight. Then it takes all of its links at once, at one rate, since a sender follows the rate at
// which its bytes arrive (self-clocking; Jacobson 1988, "Congestion avoidance and control"). When the last
// byte has left, the bytes in flight still take the links at the receiver, and the last one of them arrives
// no earlier than it was sent. A message without competitors thus ends after its latency + bytes ÷ rate.
#include "sim/transport/fluid_transport.hpp"

#include <algorithm>
#include <utility>

#include "costmodel/math/draws.hpp"

namespace fomoe::sim {

using costmodel::NodeId;
using Part = Fluid::Part;

class FluidMessage : public Message {
 public:
  FluidMessage(FluidTransport& transport, NodeId from, NodeId to, std::int64_t bytes, MessageEvents& events,
               FlowRef ref)
      : transport_(transport),
        fluid_(transport.fluid_),
        events_(events),
        bytes_(bytes),
        from_(from),
        to_(to),
        ref_(ref) {}

  void offer(double overhead_s) override {
    const double latency_s = fluid_.leaves_site(from_, to_) ? fluid_.latency_s(from_, to_) : 0;
    const double jitter_s = transport_.draw_jitter_s(from_, to_);
    lead_s_ = overhead_s + latency_s + jitter_s;
    if (transport_.departs_early(from_, to_)) {
      const auto leave = [this] { events_.when_first(ref_, [this] { depart(); }); };
      jitter_s > 0 ? fluid_.after(jitter_s, leave) : leave();
    } else if (latency_s + jitter_s > 0) {
      fluid_.after(latency_s + jitter_s, [this] { ready(true); });
    } else {
      ready(true);
    }
  }

  void accept() override { ready(false); }

 private:
  void ready(bool sender) {
    if (events_.abandoned()) return;
    if (++ready_ < 2) {
      if (sender && departed_) hold();
      return;
    }
    events_.moving(ref_, lead_s_);
    if (departed_) return arrive();
    fluid_.start(from_, to_, bytes_, Part::whole, [this] { ended(); });
  }

  void depart() {
    if (events_.abandoned()) return;
    departed_ = true;
    flight_ = fluid_.start(from_, to_, bytes_, Part::to_receiver, [this] {
      flight_ = nullptr;
      in_flight_ = bytes_;
      held_at_s_ = fluid_.now();
      leave();
    });
    fluid_.after(fluid_.latency_s(from_, to_), [this] { ready(true); });
  }

  /// Stops sending, because the first byte has arrived at a receiver that is not ready yet, or will share the
  /// receiver's links from now on.
  void hold() {
    if (flight_ == nullptr) return;
    in_flight_ = fluid_.cancel(std::exchange(flight_, nullptr));
    held_at_s_ = fluid_.now();
  }

  /// Goes on when the first byte has arrived and the receiver is ready.
  void arrive() {
    hold();
    const std::int64_t rest = bytes_ - in_flight_;
    if (rest == 0) return last_part();
    fluid_.start(from_, to_, rest, Part::whole, [this] {
      held_at_s_ = fluid_.now();
      last_part();
    });
  }

  void last_part() {
    leave();
    if (in_flight_ == 0) return ended();
    fluid_.start(from_, to_, in_flight_, Part::at_receiver,
                 [this, last_byte_s = held_at_s_ + fluid_.latency_s(from_, to_)] {
                   if (last_byte_s <= fluid_.now()) return ended();
                   fluid_.after(last_byte_s - fluid_.now(), [this] { ended(); });
                 });
  }

  void leave() {
    if (!std::exchange(left_, true) && events_.asks_for_leaving()) events_.all_left(ref_);
  }

  void ended() {
    if (events_.abandoned()) return;
    events_.sent(ref_);
    events_.arrived(ref_);
  }

  FluidTransport& transport_;
  Fluid& fluid_;
  MessageEvents& events_;
  std::int64_t bytes_;
  NodeId from_, to_;
  FlowRef ref_;
  std::int8_t ready_ = 0;  // number of ends that are ready
  bool departed_ = false, left_ = false;
  double lead_s_ = 0;
  Flight* flight_ = nullptr;    // of a message that departed early; nullptr if it does not send
  std::int64_t in_flight_ = 0;  // bytes that had left when sending ended
  double held_at_s_ = 0;        // when sending ended
};

namespace {

bool latencies_change(const platforms::Platform& platform) {
  return std::any_of(platform.changes.begin(), platform.changes.end(),
                     [](const auto& change) { return change.latency_s.has_value(); });
}

}  // namespace

FluidTransport::FluidTransport(const std::vector<costmodel::Node>& nodes, const platforms::Platform& platform,
                               const platforms::Platform& links, const costmodel::NetworkModel& network,
                               std::uint64_t seed)
    : Transport(network),
      nodes_(nodes),
      seed_(seed),
      shared_caps_(caps_of_shared(platform)),
      fluid_(nodes, links, caps(links)),
      draws_(network.jitter_s > 0 ? nodes.size() * nodes.size() : 0, 0) {
  if (!latencies_change(platform)) return;
  fluid_.on_change([this, pairs = caps(links)] {
    for (const auto& [pair, at_start] : pairs) fluid_.set_cap(pair, cap_bytes_per_s(fluid_.platform(), pair));
  });
}

void FluidTransport::restart(double clock_s, bool held, std::uint64_t stream) {
  fluid_.restart(clock_s, held);
  stream_ = stream;
  std::fill(draws_.begin(), draws_.end(), 0);
}

double FluidTransport::draw_jitter_s(NodeId from, NodeId to) {
  if (draws_.empty() || !fluid_.leaves_site(from, to)) return 0;
  const std::size_t pair = static_cast<std::size_t>(from) * nodes_.size() + static_cast<std::size_t>(to);
  return network_.jitter_s * costmodel::draw(seed_, stream_, pair, draws_[pair]++);
}

double FluidTransport::cap_bytes_per_s(const platforms::Platform& platform, Pair pair) const {
  const int a = site(pair.first), b = site(pair.second);
  const double round_trip_s = platform.path(a, b).latency_s + platform.path(b, a).latency_s;
  double cap = costmodel::flow_cap_bytes_per_s(network_, round_trip_s, platform.path(a, b));
  if (const auto found = shared_caps_.find({a, b}); found != shared_caps_.end())
    cap = std::min(cap, found->second);
  return cap;
}

/// The limits of shared links for each connection are caps of flows, which have several connections.
std::map<std::pair<int, int>, double> FluidTransport::caps_of_shared(
    const platforms::Platform& platform) const {
  std::map<std::pair<int, int>, double> caps;
  if (!platform.changes.empty() ||
      std::none_of(platform.shared_links.begin(), platform.shared_links.end(),
                   [](const platforms::SharedLink& link) { return link.per_flow; }))
    return caps;
  for (int from = 0; from < platform.size(); ++from) {
    for (int to = 0; to < platform.size(); ++to) {
      if (from == to) continue;
      const double cap = costmodel::shared_cap_bytes_per_s(network_, platform, from, to);
      if (cap < platforms::kUnlimited) caps[{from, to}] = cap;
    }
  }
  return caps;
}

/// If links change, such a limit may change as well; it is then one of each flow, with the connections of the
/// network model.
platforms::Platform FluidTransport::without_flow_limits(platforms::Platform platform,
                                                        const costmodel::NetworkModel& network) {
  for (platforms::SharedLink& link : platform.shared_links) {
    if (!link.per_flow) continue;
    link.bandwidth_bytes_per_s =
        platform.changes.empty() ? platforms::kUnlimited : network.streams * link.bandwidth_bytes_per_s;
  }
  for (platforms::LinkChange& change : platform.changes) {
    if (change.link == platforms::LinkChange::Link::shared && change.bandwidth_bytes_per_s &&
        platform.shared_links[static_cast<std::size_t>(change.from)].per_flow)
      *change.bandwidth_bytes_per_s *= network.streams;
  }
  return platform;
}

std::map<Fluid::Pair, double> FluidTransport::caps(const platforms::Platform& platform) const {
  std::map<Pair, double> caps;
  const bool all = !platform.changes.empty();  // any link may become faster than the cap
  for (NodeId from = 0; from < static_cast<NodeId>(nodes_.size()); ++from) {
    for (NodeId to = 0; to < static_cast<NodeId>(nodes_.size()); ++to) {
      const int a = site(from), b = site(to);
      if (a == b) continue;
      const double cap = cap_bytes_per_s(platform, {from, to});
      if (cap == platforms::kUnlimited) continue;
      if (all || cap < platform.route_bytes_per_s(a, b)) caps[{from, to}] = cap;
    }
  }
  return caps;
}

std::unique_ptr<Message> FluidTransport::message(NodeId from, NodeId to, std::int64_t bytes,
                                                 MessageEvents& events, FlowRef ref) {
  return std::make_unique<FluidMessage>(*this, from, to, bytes, events, ref);
}

}  // namespace fomoe::sim
