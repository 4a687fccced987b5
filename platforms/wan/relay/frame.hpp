// Parses the result of one read from a TUN device with IFF_VNET_HDR: a virtio header and an IPv4 packet. The
// packet may be a run of TCP segments that the kernel has not cut yet. The relay forwards such a run whole,
// which costs the work of one packet, and shapes it as the segments that a real wire would carry.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace fomoe::platforms::wan {

struct Frame {
  std::uint32_t destination = 0;  // IPv4, host byte order
  double wire_bytes = 0;          // all bytes, with IP and TCP headers of every segment
  double segment_bytes = 0;       // bytes of the first segment, with headers
};

inline constexpr std::size_t kVirtioHeader_bytes = 10;

/// Parses one read from the TUN device. Returns nullopt if the packet is not IPv4, or is truncated.
std::optional<Frame> parse_frame(std::span<const std::byte> bytes);

/// Keeps the first `count` segments of a run, at least one. Flags of the last segment (FIN, PSH) go with it.
/// `bytes` is what parse_frame() takes; a packet that is no run, or has no more segments, stays as it is.
void keep_segments(std::vector<std::byte>& bytes, std::size_t count);

}  // namespace fomoe::platforms::wan
