// What a site measures: how fast TCP gets through to it, and how long a datagram takes there and back.
#pragma once
#include <cstdint>

namespace fomoe::platforms::wan {

/// Sends zeros until `seconds` have passed or the receiver closes. Returns the payload bytes given to TCP.
double send_tcp(std::uint32_t to, std::uint16_t port, double seconds);

/// Payload bytes per second that one connection delivers, from `warm_up_s` after its first byte on, for
/// `measured_s`.
double receive_tcp(std::uint16_t port, double warm_up_s, double measured_s);

/// Sends every datagram back, for ever.
double echo_udp(std::uint16_t port);

/// The median of `count` round trips, in seconds.
double ping_udp(std::uint32_t to, std::uint16_t port, int count);

inline constexpr double kPing_wire_bytes = 20 + 8 + 16;  // IPv4, UDP, what we send

}  // namespace fomoe::platforms::wan
