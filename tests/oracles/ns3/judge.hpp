// How fomoe and ns-3 are compared: each case names how much earlier and later fomoe may be, and why.
#pragma once
#include <doctest/doctest.h>

#include <cmath>
#include <string>

#include "tests/oracles/comparison.hpp"
#include "tests/oracles/ns3/ns3.hpp"

namespace fomoe::oracles {

struct Case {
  std::string name, traffic;
  double bits_per_s = 0, latency_s = 0;
  long bytes = 0;
  int sites = 2;
};

inline double round_trip_s(const Case& c) { return 2 * c.latency_s; }
inline double pipe_bytes(const Case& c) { return c.bits_per_s / 8 * round_trip_s(c); }

/// fomoe's TCP terms for one direction of data, or for data both ways: then each link carries, besides its
/// data, the acknowledgements of what comes the other way, one for two segments.
inline costmodel::NetworkModel tcp_terms(bool both_ways) {
  costmodel::NetworkModel network;
  network.bandwidth_efficiency = kPayload / (kWire + (both_ways ? kAcknowledgement / 2 : 0));
  network.initial_window_bytes = kInitialWindow;
  return network;
}

/// What packets add to a fluid: in each trip of the ramp, and once at the end, a segment is put on the wire
/// once more by the hub, and its acknowledgement twice (two of them take less than a segment).
inline double packets_s(const Case& c) {
  const double trips = std::max(0.0, std::ceil(std::log2(pipe_bytes(c) / kInitialWindow)));
  return 3 * (trips + 1) * kWire * 8 / c.bits_per_s;
}

/// What delayed acknowledgements add: of the first ten segments one stays unacknowledged until another comes,
/// so the ramp carries a tenth less. Its bytes are at most two pipes: a tenth of that at full rate.
inline double delayed_acks_s(const Case& c) { return 0.1 * 2 * round_trip_s(c); }

struct Judgement {
  double early_s = 0, late_s = 0;  // how much sooner, and later, than ns-3 fomoe may end
  std::string cause;
};

inline std::string title(const Case& c) {
  char text[120];
  std::snprintf(text, sizeof text, ", %g Gb/s, %g ms, %g MB", c.bits_per_s / 1e9, c.latency_s * 1e3,
                static_cast<double>(c.bytes) / 1e6);
  return c.name + text;
}

inline void judge_star(const std::string& name, const Star& star, const Case& c, const Tcp& tcp,
                       const costmodel::NetworkModel& network, const Judgement& judgement) {
  const double fomoe_s = latest(fomoe_transfer(c.traffic, star, c.bytes, network));
  const double ns3_s = latest(ns3_transfer(c.traffic, tcp, star, c.bytes).end_s);
  CAPTURE(name);
  CHECK(fomoe_s >= ns3_s - judgement.early_s);
  CHECK(fomoe_s <= ns3_s + judgement.late_s);
  tell({name, fomoe_s, ns3_s, judgement.cause});
}

inline void judge(const Case& c, const Tcp& tcp, const costmodel::NetworkModel& network,
                  const Judgement& judgement) {
  judge_star("ns-3, " + title(c), equal_star(c.sites, c.bits_per_s, c.latency_s), c, tcp, network, judgement);
}

}  // namespace fomoe::oracles
