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
constexpr std::size_t kIpHeader = 20;

std::uint32_t at(std::span<const std::byte> ip, std::size_t i) {
  return std::to_integer<std::uint32_t>(ip[i]);
}

std::uint32_t word(std::span<const std::byte> ip, std::size_t i) { return at(ip, i) << 8 | at(ip, i + 1); }

void write_word(std::span<std::byte> ip, std::size_t i, std::uint32_t value) {
  ip[i] = static_cast<std::byte>(value >> 8 & 0xff);
  ip[i + 1] = static_cast<std::byte>(value & 0xff);
}

/// A sum of 16-bit words with the carries added (RFC 1071).
std::uint32_t folded(std::uint32_t sum) {
  while (sum >> 16 != 0) sum = (sum & 0xffff) + (sum >> 16);
  return sum;
}

/// A run of TCP segments over IPv4: the lengths of its headers, and of the payload of a whole segment.
struct Run {
  std::size_t ip_header, headers, segment;
};

/// The run that `ip` is; nullopt if it is one packet, or is truncated.
std::optional<Run> run_of(const VirtioHeader& header, std::span<const std::byte> ip) {
  constexpr std::size_t kTcpHeader = 20;
  if ((header.gso_type & ~kWithEcn) != kTcpOverIpv4 || header.gso_size == 0) return std::nullopt;
  const std::size_t ip_header = std::size_t{at(ip, 0) & 15U} * 4;
  if (ip.size() < ip_header + kTcpHeader) return std::nullopt;
  const std::size_t headers = ip_header + std::size_t{at(ip, ip_header + 12) >> 4} * 4;
  if (ip.size() < headers) return std::nullopt;
  return Run{ip_header, headers, header.gso_size};
}

}  // namespace

std::optional<Frame> parse_frame(std::span<const std::byte> bytes) {
  if (bytes.size() < kVirtioHeader_bytes + kIpHeader) return std::nullopt;
  VirtioHeader header{};
  std::memcpy(&header, bytes.data(), sizeof header);
  const auto ip = bytes.subspan(kVirtioHeader_bytes);
  if (at(ip, 0) >> 4 != 4) return std::nullopt;

  Frame frame;
  frame.destination = word(ip, 16) << 16 | word(ip, 18);
  frame.wire_bytes = frame.segment_bytes = static_cast<double>(ip.size());
  const bool is_run = (header.gso_type & ~kWithEcn) == kTcpOverIpv4 && header.gso_size > 0;
  const std::optional<Run> run = run_of(header, ip);
  if (is_run && !run) return std::nullopt;
  if (run) {
    const auto payload = static_cast<double>(ip.size() - run->headers),
               headers = static_cast<double>(run->headers);
    const double segments = std::max(1.0, std::ceil(payload / static_cast<double>(run->segment)));
    frame.wire_bytes = payload + segments * headers;
    frame.segment_bytes = std::min(frame.wire_bytes, static_cast<double>(run->segment) + headers);
  }
  return frame;
}

void keep_segments(std::vector<std::byte>& bytes, std::size_t count) {
  if (bytes.size() < kVirtioHeader_bytes + kIpHeader) return;
  VirtioHeader header{};
  std::memcpy(&header, bytes.data(), sizeof header);
  const std::optional<Run> run = run_of(header, std::span(bytes).subspan(kVirtioHeader_bytes));
  if (!run || kVirtioHeader_bytes + run->headers + count * run->segment >= bytes.size()) return;
  const auto old_length = static_cast<std::uint32_t>(bytes.size() - kVirtioHeader_bytes);
  bytes.resize(kVirtioHeader_bytes + run->headers + count * run->segment);
  const std::span<std::byte> ip = std::span(bytes).subspan(kVirtioHeader_bytes);
  const auto length = static_cast<std::uint32_t>(ip.size());
  if (count == 1) {
    header.gso_type = 0;
    header.gso_size = 0;
    std::memcpy(bytes.data(), &header, sizeof header);
  }
  write_word(ip, 2, length);  // total length
  write_word(ip, 10, 0);      // checksum of the IP header
  std::uint32_t sum = 0;
  for (std::size_t i = 0; i < run->ip_header; i += 2) sum += word(ip, i);
  write_word(ip, 10, ~folded(sum) & 0xffff);
  // The checksum of TCP is that of the pseudo-header, with the length; the receiver's kernel adds the rest.
  const std::size_t tcp = run->ip_header, checksum = tcp + 16;
  write_word(ip, checksum, folded(word(ip, checksum) + (~old_length & 0xffff) + length));
  constexpr std::uint32_t kFin = 1, kPush = 8;
  ip[tcp + 13] = static_cast<std::byte>(at(ip, tcp + 13) & ~(kFin | kPush));
}

}  // namespace fomoe::platforms::wan
