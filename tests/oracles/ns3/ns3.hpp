// ns-3 as an oracle: TCP packet by packet over the star that tcp_transfer.cpp builds.
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

// What a segment is on ns-3's point-to-point links: 1448 B payload, 12 B time stamps, 20 B TCP, 20 B IP, 2 B
// PPP.
constexpr double kPayload = 1448, kWire = kPayload + 12 + 20 + 20 + 2;
// An acknowledgement: the same without payload. One for every two segments.
constexpr double kAcknowledgement = kWire - kPayload;
constexpr double kInitialWindow = 10 * kPayload;
constexpr double kPause_s = 2;  // of tcp_transfer's "again"

struct Tcp {
  std::string kind = "TcpLinuxReno";
  double queue_bytes = 0;   // first in, first out; 0: connections take turns, nothing is dropped (see kDeep)
  long window_bytes = 0;    // of the receiver; 0: no limit
  int segments_an_ack = 2;  // delayed acknowledgements, as everywhere
};

constexpr double kDeep = 4e8;  // a queue that is first in, first out, and never full

struct Ns3Answer {
  std::vector<double> end_s;  // of each site
  long dropped = 0;           // packets
};

/// `traffic` as tcp_transfer.cpp has it.
Ns3Answer ns3_transfer(const std::string& traffic, const Tcp& tcp, const Star& star, long bytes);

/// fomoe's answer to the same: the same star as a platform, the same traffic as a plan. "again" has a pause.
std::vector<double> fomoe_transfer(const std::string& traffic, const Star& star, long bytes,
                                   const costmodel::NetworkModel& network);

}  // namespace fomoe::oracles
