// What a site measures: how fast TCP gets through to it, and how long a datagram takes there and back.
#pragma once
#include <cstdint>

namespace fomoe::platforms::wan {

/// How a rate is measured: the receiver says how much has come, and the sender never has more under way than
/// `window_bytes`. With a window between what the path holds and what its queue holds besides, the link is
/// always busy and nothing is lost, so that we measure the link and not how TCP recovers.
struct RateProbe {
  std::uint16_t port = 0;
  double window_bytes = 0;
  double piece_bytes = 0;  // full segments, so that no small one comes between
  // 0: none. Somewhat more than the link's rate; otherwise acknowledgements that waited behind the data of
  // the other direction come in bunches, and so does what they let go: both directions are then idle by
  // turns.
  double pace_bytes_per_s = 0;
  double warm_up_s = 0;  // from the first byte on
  double measured_s = 0;
};

/// Sends zeros until the receiver closes. Returns the payload bytes given to TCP.
double send_tcp(std::uint32_t to, const RateProbe& probe);

/// Payload bytes per second that one connection delivers.
double receive_tcp(const RateProbe& probe);

/// Sends every datagram back, for ever.
double echo_udp(std::uint16_t port);

/// The median of `count` round trips, in seconds.
double ping_udp(std::uint32_t to, std::uint16_t port, int count);

inline constexpr double kPing_wire_bytes = 20 + 8 + 16;  // IPv4, UDP, what we send

}  // namespace fomoe::platforms::wan
