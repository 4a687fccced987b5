#include "platforms/wan/relay/relay_core.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "platforms/wan/relay/frame.hpp"

namespace fomoe::platforms::wan {

RelayCore::RelayCore(Layout layout)
    : layout_(std::move(layout)),
      free_s_(layout_.links.size(), -std::numeric_limits<double>::infinity()),
      counts_(layout_.links.size()) {}

void RelayCore::receive(double now_s, Packet packet) { serve({now_s, 0, now_s, 0, std::move(packet)}); }

void RelayCore::serve(Flight flight) {
  Packet& packet = flight.packet;
  const Route& route = layout_.route(packet.from, packet.to);
  const auto index = static_cast<std::size_t>(route.links[flight.stage]);
  const Link& link = layout_.links[index];
  double& free_s = free_s_[index];
  if (free_s > flight.at_s) {
    const double waiting_bytes = (free_s - flight.at_s) * link.bytes_per_s;
    if (waiting_bytes + packet.wire_bytes > link.queue_bytes) {
      const auto segments = std::ceil(packet.wire_bytes / packet.segment_bytes);
      const double kept = std::clamp(std::floor((link.queue_bytes - waiting_bytes) / packet.segment_bytes),
                                     0.0, segments - 1);
      counts_[index].drops += static_cast<std::uint64_t>(segments - kept);
      if (kept == 0) return;
      packet.wire_bytes = kept * packet.segment_bytes;
      if (!packet.content.empty()) keep_segments(packet.content, static_cast<std::size_t>(kept));
    }
  }
  const double start_s = std::max(flight.at_s, free_s);
  const double first_s = start_s + packet.segment_bytes / link.bytes_per_s;
  free_s = std::max(start_s + packet.wire_bytes / link.bytes_per_s,
                    flight.whole_s + packet.segment_bytes / link.bytes_per_s);
  counts_[index].bytes += packet.wire_bytes;

  ++flight.stage;
  const bool at_site = flight.stage == route.links.size();
  const double latency_s = flight.stage + 1 == route.links.size() ? route.latency_s : 0;
  flight.at_s = (at_site ? free_s : first_s) + latency_s;
  flight.whole_s = free_s + latency_s;
  flight.turn = turn_++;
  flights_.push_back(std::move(flight));
  std::push_heap(flights_.begin(), flights_.end(), later);
}

void RelayCore::advance(double now_s, const std::function<void(Packet&&, double)>& deliver) {
  while (!flights_.empty() && flights_.front().at_s <= now_s) {
    std::pop_heap(flights_.begin(), flights_.end(), later);
    Flight flight = std::move(flights_.back());
    flights_.pop_back();
    const Packet& packet = flight.packet;
    if (flight.stage == layout_.route(packet.from, packet.to).links.size()) {
      deliver(std::move(flight.packet), flight.at_s);
    } else {
      serve(std::move(flight));
    }
  }
}

std::optional<double> RelayCore::next_s() const {
  if (flights_.empty()) return std::nullopt;
  return flights_.front().at_s;
}

}  // namespace fomoe::platforms::wan
