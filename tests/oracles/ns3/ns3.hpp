// ns-3 as an oracle: it simulates TCP packet by packet over the star that tcp_transfer.cpp builds.
#pragma once
#include <string>
#include <vector>

#include "costmodel/inputs/network_model.hpp"
#include "costmodel/plan/plan.hpp"
#include "platforms/platform.hpp"

namespace fomoe::oracles {

struct StarSite {
  double up_bits_per_s = 0, down_bits_per_s = 0, half_latency_s = 0;
};
using Star = std::vector<StarSite>;

inline Star equal_star(int sites, double bits_per_s, double latency_s) {
  return Star(static_cast<std::size_t>(sites), {bits_per_s, bits_per_s, latency_s / 2});
}

// Bytes of a segment on ns-3's point-to-point links: 1448 B payload, 12 B time stamps, 20 B TCP, 20 B IP, 2 B
// PPP.
constexpr double kPayload = 1448, kWire = kPayload + 12 + 20 + 20 + 2;
// Bytes of an acknowledgement: a segment without payload. There is one for every two segments.
constexpr double kAcknowledgement = kWire - kPayload;
constexpr double kInitialWindow = 10 * kPayload;
constexpr double kPause_s = 2;  // pause in tcp_transfer's traffic "again"

constexpr double kDeep = 4e8;  // bytes of a first-in first-out queue that is never full

struct Tcp {
  std::string kind = "TcpLinuxReno";
  double queue_bytes = kDeep;  // first in, first out
  long window_bytes = 0;       // receive window; no limit if 0
  int segments_an_ack = 2;     // segments per acknowledgement; 2 is TCP's usual delayed acknowledgement
};

struct Ns3Answer {
  std::vector<double> end_s;  // [site]: time of its end
  long dropped = 0;           // number of dropped packets
};

/// ns-3's result for a transfer. tcp_transfer.cpp lists the values of `traffic`.
Ns3Answer ns3_transfer(const std::string& traffic, const Tcp& tcp, const Star& star, long bytes);

/// The time at which each site ends by fomoe's connections alone (sim/tcp), without the protocol of messages,
/// which ns-3's program does not have; or, with all terms off, by the simulator. The traffic "again" includes
/// the pause kPause_s.
std::vector<double> fomoe_transfer(const std::string& traffic, const Star& star, long bytes,
                                   const costmodel::NetworkModel& network);

}  // namespace fomoe::oracles
