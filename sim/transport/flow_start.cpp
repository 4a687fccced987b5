#include "sim/transport/flow_start.hpp"

#include <algorithm>

namespace fomoe::sim {

using costmodel::NodeId;

namespace {

// A hash function for pseudorandom draws (Steele et al. 2014, "SplitMix"). Its results are the same on every
// machine, and no draw depends on the order of other draws.
std::uint64_t mixed(std::uint64_t value) {
  value += 0x9e3779b97f4a7c15ULL;
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9ULL;
  value = (value ^ (value >> 27)) * 0x94d049bb133111ebULL;
  return value ^ (value >> 31);
}

constexpr std::uint64_t kJitterDraws = 2ULL << 32;

}  // namespace

FlowStart::FlowStart(const std::vector<costmodel::Node>& nodes, const platforms::Platform& platform,
                     const costmodel::NetworkModel& network, std::uint64_t seed)
    : nodes_(nodes), platform_(platform), network_(network), seed_(seed) {
  if (network.jitter_s > 0 || network.initial_window_bytes || network.send_buffer_bytes)
    connections_.resize(nodes.size() * nodes.size());
}

double FlowStart::round_trip_s(int from_site, int to_site) const {
  return platform_.path(from_site, to_site).latency_s + platform_.path(to_site, from_site).latency_s;
}

const FlowStart::Connection& FlowStart::connection(NodeId from, NodeId to) const {
  return connections_[static_cast<std::size_t>(from) * nodes_.size() + static_cast<std::size_t>(to)];
}

FlowStart::Connection& FlowStart::connection(NodeId from, NodeId to) {
  return connections_[static_cast<std::size_t>(from) * nodes_.size() + static_cast<std::size_t>(to)];
}

double FlowStart::cap_bytes_per_s(NodeId from, NodeId to) const {
  return costmodel::flow_cap_bytes_per_s(network_, round_trip_s(site(from), site(to)));
}

double FlowStart::send_buffer_bytes(NodeId from, NodeId to) const {
  const bool leaves_site = site(from) != site(to);
  return costmodel::send_buffer_bytes(network_, leaves_site ? connection(from, to).pipe_bytes : 0);
}

double FlowStart::draw(NodeId from, NodeId to, std::uint64_t which) const {
  const std::uint64_t pair =
      static_cast<std::uint64_t>(from) * nodes_.size() + static_cast<std::uint64_t>(to);
  const std::uint64_t seed = stream_ == 0 ? seed_ : seed_ ^ mixed(stream_);
  return static_cast<double>(mixed(mixed(mixed(seed) ^ pair) ^ which) >> 11) * 0x1p-53;
}

void FlowStart::restart(std::uint64_t stream) {
  stream_ = stream;
  connections_.assign(connections_.size(), {});
}

double FlowStart::wait_s(NodeId from, NodeId to, std::int64_t bytes, double delivered_bytes,
                         const ConcurrentFlows& concurrent, double now_s) {
  const int a = site(from), b = site(to);
  if (a == b) return 0;  // inside a site
  const platforms::Path& path = platform_.path(a, b);
  double wait_s = path.latency_s;
  if (connections_.empty()) return wait_s;
  Connection& used = connection(from, to);
  if (network_.jitter_s > 0) {
    wait_s += network_.jitter_s * draw(from, to, kJitterDraws + used.flows);
  }
  const double round_trip = round_trip_s(a, b);
  if (costmodel::restarts_when_idle(network_) &&
      now_s - used.last_used_s > costmodel::idle_limit_s(round_trip))
    used.sent_bytes = 0;
  const double bytes_per_s =
      std::min({platform_.sites[static_cast<std::size_t>(a)].uplink_bytes_per_s / concurrent.sent,
                path.bandwidth_bytes_per_s,
                platform_.sites[static_cast<std::size_t>(b)].downlink_bytes_per_s / concurrent.received,
                cap_bytes_per_s(from, to)});
  if (round_trip > 0) used.pipe_bytes = std::max(used.pipe_bytes, bytes_per_s * round_trip);
  if (network_.initial_window_bytes)
    wait_s += costmodel::slow_start_s(network_, used.sent_bytes + delivered_bytes, static_cast<double>(bytes),
                                      bytes_per_s, round_trip);
  ++used.flows;
  used.last_used_s = now_s;
  return wait_s;
}

void FlowStart::ended(NodeId from, NodeId to, double bytes, double now_s) {
  if (connections_.empty()) return;
  Connection& used = connection(from, to);
  used.last_used_s = now_s;
  used.sent_bytes += bytes;
}

}  // namespace fomoe::sim
