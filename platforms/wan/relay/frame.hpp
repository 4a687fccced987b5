// What one read from a TUN with IFF_VNET_HDR gives: a virtio header, then an IPv4 packet, which may be a run
// of TCP segments that the kernel has not cut yet. We pass such a run on whole, which costs one packet's
// work, and shape it as the segments that a real wire would carry.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace fomoe::platforms::wan {

struct Frame {
  std::uint32_t destination = 0;  // IPv4, host byte order
  double wire_bytes = 0;          // IP and TCP headers of every segment included
  double segment_bytes = 0;       // of the first segment, headers included
};

inline constexpr std::size_t kVirtioHeader_bytes = 10;

/// Nothing for what is not IPv4, or is cut short.
std::optional<Frame> parse_frame(std::span<const std::byte> bytes);

}  // namespace fomoe::platforms::wan
