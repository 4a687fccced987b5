// The comparison of fomoe with ns-3. Each case states how much earlier and later than ns-3 fomoe may end, and
// why.
#pragma once
#include <doctest/doctest.h>

#include <cmath>
#include <limits>
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

/// The network model of what ns-3 simulates, for data in one direction or in both. With data in both
/// directions, each link also carries the acknowledgements of the other direction, one for two segments.
/// ns-3's hosts have one queue, as a router has, and its sockets have buffers without limits.
inline costmodel::NetworkModel terms_of(const Tcp& tcp, const Case& c, bool both_ways) {
  costmodel::NetworkModel network;
  network.bandwidth_efficiency = kPayload / (kWire + (both_ways ? kAcknowledgement / 2 : 0));
  network.initial_window_bytes = kInitialWindow;
  network.segment_bytes = kPayload;
  network.congestion_control = tcp.kind == "TcpCubic" ? costmodel::CongestionControl::cubic
                               : tcp.kind == "TcpBbr" ? costmodel::CongestionControl::bbr
                                                      : costmodel::CongestionControl::reno;
  network.uplink_queue = costmodel::UplinkQueue::router;
  network.queue_bdp = tcp.queue_bytes / pipe_bytes(c);
  if (tcp.window_bytes > 0) network.tcp_window_bytes = static_cast<double>(tcp.window_bytes);
  return network;
}

/// The time that packets add to a fluid model. In each round trip of slow start, and once at the end, the hub
/// transmits a segment once more, and its acknowledgement is transmitted twice (two of these take less than a
/// segment).
inline double packets_s(const Case& c) {
  const double trips = std::max(0.0, std::ceil(std::log2(pipe_bytes(c) / kInitialWindow)));
  return 3 * (trips + 1) * kWire * 8 / c.bits_per_s;
}

/// The time that delayed acknowledgements add. One of the first ten segments stays unacknowledged until
/// another one arrives, so slow start carries a tenth less. Its bytes are at most two bandwidth-delay
/// products, so the result is a tenth of their time at the full rate.
inline double delayed_acks_s(const Case& c) { return 0.1 * 2 * round_trip_s(c); }

/// The time that bursts add: fomoe stores and forwards up to 64 KiB where ns-3 has segments, at both links of
/// the way, at the end of slow start and once more at the end of the transfer.
inline double bursts_s(const Case& c) { return 4 * 65536 * 8 / c.bits_per_s; }

constexpr double kAny = std::numeric_limits<double>::infinity();  // no bound on that side

struct Judgement {
  double early_s = 0, late_s = 0;  // how much earlier, and how much later, than ns-3 fomoe may end
  std::string cause;
};

inline std::string title(const Case& c) {
  char text[120];
  std::snprintf(text, sizeof text, ", %g Gb/s, %g ms, %g MB", c.bits_per_s / 1e9, c.latency_s * 1e3,
                static_cast<double>(c.bytes) / 1e6);
  return c.name + text;
}

/// Only data in one direction, or both.
inline bool both_ways(const Case& c) { return c.traffic == "ring" || c.traffic == "direct"; }

inline void judge_star(const std::string& name, const Star& star, const Case& c, const Tcp& tcp,
                       const costmodel::NetworkModel& network, const Judgement& judgement) {
  const double fomoe_s = latest(fomoe_transfer(c.traffic, star, c.bytes, network));
  const double ns3_s = latest(ns3_transfer(c.traffic, tcp, star, c.bytes).end_s);
  CAPTURE(name);
  CHECK(fomoe_s >= ns3_s - judgement.early_s);
  CHECK(fomoe_s <= ns3_s + judgement.late_s);
  tell({name, fomoe_s, ns3_s, judgement.cause});
}

inline void judge(const Case& c, const Tcp& tcp, const Judgement& judgement) {
  judge_star("ns-3, " + title(c), equal_star(c.sites, c.bits_per_s, c.latency_s), c, tcp,
             terms_of(tcp, c, both_ways(c)), judgement);
}

/// fomoe may be that share of ns-3's time earlier or later.
inline void judge_within(const Case& c, const Tcp& tcp, double share, const std::string& cause) {
  const Star star = equal_star(c.sites, c.bits_per_s, c.latency_s);
  const double ns3_s = latest(ns3_transfer(c.traffic, tcp, star, c.bytes).end_s);
  judge(c, tcp, {share * ns3_s, share * ns3_s, cause});
}

}  // namespace fomoe::oracles
