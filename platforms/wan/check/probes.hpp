// The two ends of the measurements between sites: the rate of a TCP connection, and the round trip of a UDP
// datagram.
#pragma once
#include <cstdint>

namespace fomoe::platforms::wan {

/// Settings of a rate measurement. The receiver reports how many bytes have arrived, and the sender never has
/// more than `window_bytes` in flight. If the window exceeds the path's bandwidth-delay product by less than
/// its queue, the link is always busy and no packet is lost. The result is then the rate of the link, not an
/// effect of TCP's loss recovery.
struct RateProbe {
  std::uint16_t port = 0;
  double window_bytes = 0;
  double piece_bytes = 0;  // bytes of one write; a multiple of a full segment, to avoid small packets
  // Pacing rate of the sender, somewhat above the link's rate; 0 for no pacing. Without pacing,
  // acknowledgements that wait behind the data of the other direction arrive in bursts, and release data in
  // bursts, so that the two directions are idle in turns.
  double pace_bytes_per_s = 0;
  double warm_up_s = 0;  // time from the first byte to the start of the measurement
  double measured_s = 0;
};

/// Sends zeros until the receiver closes the connection. Returns the payload bytes that were passed to TCP.
double send_tcp(std::uint32_t to, const RateProbe& probe);

/// Receives from send_tcp(). Returns the payload bytes per second that the connection delivers.
double receive_tcp(const RateProbe& probe);

/// Sends every datagram back. Does not return.
double echo_udp(std::uint16_t port);

/// The median of `count` round trips, in seconds.
double ping_udp(std::uint32_t to, std::uint16_t port, int count);

inline constexpr double kPing_wire_bytes = 20 + 8 + 16;  // IPv4 header, UDP header, payload

}  // namespace fomoe::platforms::wan
