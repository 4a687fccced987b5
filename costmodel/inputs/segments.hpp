// How Linux cuts what a connection sends, and what that takes in a send buffer.
#pragma once
#include <algorithm>
#include <cstdint>

namespace fomoe::costmodel {

/// Payload of a full segment (NetworkModel::segment_bytes), with the usual packets of 1500 bytes.
inline constexpr double kSegment_bytes = 1448;

/// What a connection hands to the network card at once: what it would send in 1/1024 s at its pacing rate, at
/// least two segments, at most what segmentation offload takes (tcp_tso_autosize() in net/ipv4/tcp_output.c).
inline constexpr double kMostOffload_bytes = 65536 - 1 - 320;  // GSO_MAX_SIZE less MAX_TCP_HEADER
inline double burst_bytes(double pace_bytes_per_s, double segment_bytes) {
  return std::max(2 * segment_bytes, std::min(pace_bytes_per_s / 1024, kMostOffload_bytes));
}

/// Bytes of a send buffer that a byte of payload takes in bursts of that size: each burst has structures that
/// describe it (struct sk_buff, skb_shared_info and headers).
inline double memory_per_byte(double burst_bytes) {
  constexpr double kDescription_bytes = 1280;
  return 1 + kDescription_bytes / burst_bytes;
}

/// The shortest retransmission time-out is the round trip and this (TCP_RTO_MIN).
inline constexpr double kLeastTimeout_s = 0.2;

}  // namespace fomoe::costmodel
