// How Linux cuts what a connection sends.
#pragma once
#include <algorithm>
#include <cstdint>

namespace fomoe::sim {

/// Payload of a full segment: packets of 1500 bytes, less 40 for IPv4 and TCP and 12 for timestamps.
inline constexpr double kSegment_bytes = 1448;

/// Windows of a new connection (RFC 6928).
inline constexpr double kFirstWindow_bytes = 10 * kSegment_bytes;

/// What a connection hands to the network card at once: what it would send in 1/1024 s at its pacing rate, at
/// least two segments, at most what segmentation offload takes (tcp_tso_autosize() in net/ipv4/tcp_output.c).
inline constexpr double kMostOffload_bytes = 65536 - 1 - 320;  // GSO_MAX_SIZE less MAX_TCP_HEADER
inline double burst_bytes(double pace_bytes_per_s) {
  return std::clamp(pace_bytes_per_s / 1024, 2 * kSegment_bytes, kMostOffload_bytes);
}

}  // namespace fomoe::sim
