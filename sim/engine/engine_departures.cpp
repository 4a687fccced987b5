// The part of Engine that lets a flow take its uplink when it is sent and its downlink when it arrives, one
// latency later.
//
// A flow has three parts. From its departure until its first byte arrives, it takes all links but the
// downlink, at most at the downlink's rate. The bytes that it sends in this time are in flight. Then it takes
// all of its links at once, at one rate, since a sender follows the rate at which its bytes arrive
// (self-clocking; Jacobson 1988, "Congestion avoidance and control"). When the last byte has left, the bytes
// in flight still take the downlink, and the last one of them arrives no earlier than it was sent. A flow
// without competitors thus ends after its latency + bytes ÷ rate.
#include <algorithm>
#include <cmath>
#include <memory>

#include "sim/engine/engine_simgrid.hpp"

namespace fomoe::sim {

bool Engine::departs_early(NodeId from, NodeId to) const {
  return unequal_latencies_ && leaves_site(from, to);
}

std::shared_ptr<Departure> Engine::depart(NodeId from, NodeId to, std::int64_t bytes) {
  if (!platform_.changes.empty()) refuse_dead_links(from, to);
  Simgrid& sg = *simgrid_;
  sg.route_in_parts(nodes_, platform_, from, to);
  auto departure = std::make_shared<Departure>();
  departure->from = from;
  departure->to = to;
  departure->bytes = bytes;
  departure->flight = sg.start(sg.hosts[static_cast<std::size_t>(from)],
                               sg.way_out[static_cast<std::size_t>(to)], bytes, [this, departure] {
                                 departure->flight = nullptr;
                                 departure->sent = departure->bytes;
                                 departure->sent_at_s = now();
                               });
  departure->flight->arrives = false;
  return departure;
}

void Engine::hold(Departure& departure) {
  Flight* flight = departure.flight;
  if (flight == nullptr) return;
  departure.flight = nullptr;
  departure.sent =
      std::min(departure.bytes,
               static_cast<std::int64_t>(std::llround(flight->bytes - flight->comm->get_remaining())));
  departure.sent_at_s = now();
  flight->comm->cancel();
}

void Engine::arrive(std::shared_ptr<Departure> departure, Callback arrived) {
  hold(*departure);
  const Pair pair{departure->from, departure->to};
  const std::int64_t in_flight = departure->sent, rest = departure->bytes - in_flight;
  const auto last_part = [this, pair, in_flight, rest, sent_at_s = departure->sent_at_s,
                          arrived = std::move(arrived)] {
    if (in_flight == 0) return arrived();
    const double last_byte_s = (rest == 0 ? sent_at_s : now()) + latency_s(pair.first, pair.second);
    Simgrid& sg = *simgrid_;
    Flight* flight = sg.start(sg.way_in[static_cast<std::size_t>(pair.first)],
                              sg.hosts[static_cast<std::size_t>(pair.second)], in_flight,
                              [this, last_byte_s, arrived] {
                                if (last_byte_s <= now()) return arrived();
                                after(last_byte_s - now(), arrived);
                              });
    flight->from = pair.first;
    flight->to = pair.second;
  };
  if (rest == 0) return last_part();
  begin_flow(pair.first, pair.second, rest, last_part);
}

}  // namespace fomoe::sim
