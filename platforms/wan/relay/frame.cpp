#include "platforms/wan/relay/frame.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace fomoe::platforms::wan {

namespace {

// The virtio_net_hdr of linux/virtio_net.h. That header is not valid C++, since a field of it is named
// `class`.
struct VirtioHeader {
  std::uint8_t flags, gso_type;
  std::uint16_t hdr_len, gso_size, csum_start, csum_offset;
};
static_assert(sizeof(VirtioHeader) == kVirtioHeader_bytes);
constexpr unsigned kTcpOverIpv4 = 1, kWithEcn = 0x80;

}  // namespace

std::optional<Frame> parse_frame(std::span<const std::byte> bytes) {
  constexpr std::size_t kIpHeader = 20, kTcpHeader = 20;
  if (bytes.size() < kVirtioHeader_bytes + kIpHeader) return std::nullopt;
  VirtioHeader header{};
  std::memcpy(&header, bytes.data(), sizeof header);
  const auto ip = bytes.subspan(kVirtioHeader_bytes);
  const auto at = [&](std::size_t i) { return std::to_integer<std::uint32_t>(ip[i]); };
  if (at(0) >> 4 != 4) return std::nullopt;

  Frame frame;
  frame.destination = at(16) << 24 | at(17) << 16 | at(18) << 8 | at(19);
  frame.wire_bytes = frame.segment_bytes = static_cast<double>(ip.size());
  if ((header.gso_type & ~kWithEcn) == kTcpOverIpv4 && header.gso_size > 0) {
    const std::size_t ip_header = std::size_t{at(0) & 15U} * 4;
    if (ip.size() < ip_header + kTcpHeader) return std::nullopt;
    const std::size_t headers = ip_header + std::size_t{at(ip_header + 12) >> 4} * 4;
    if (ip.size() < headers) return std::nullopt;
    const double payload = static_cast<double>(ip.size() - headers);
    const double segments = std::max(1.0, std::ceil(payload / header.gso_size));
    frame.wire_bytes = payload + segments * static_cast<double>(headers);
    frame.segment_bytes = std::min(frame.wire_bytes, static_cast<double>(header.gso_size + headers));
  }
  return frame;
}

}  // namespace fomoe::platforms::wan
