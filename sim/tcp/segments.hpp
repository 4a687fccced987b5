// How Linux cuts what a connection sends.
#pragma once
#include <algorithm>
#include <cstdint>

namespace fomoe::sim {

/// Payload of a full segment (NetworkModel::segment_bytes), with the usual packets of 1500 bytes.
inline constexpr double kSegment_bytes = 1448;

/// What a connection hands to the network card at once: what it would send in 1/1024 s at its pacing rate, at
/// least two segments, at most what segmentation offload takes (tcp_tso_autosize() in net/ipv4/tcp_output.c).
inline constexpr double kMostOffload_bytes = 65536 - 1 - 320;  // GSO_MAX_SIZE less MAX_TCP_HEADER
inline double burst_bytes(double pace_bytes_per_s, double segment_bytes) {
  return std::clamp(pace_bytes_per_s / 1024, 2 * segment_bytes, kMostOffload_bytes);
}

}  // namespace fomoe::sim
