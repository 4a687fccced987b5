#include "sim/transport/connections.hpp"

#include <algorithm>
#include <utility>

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

}  // namespace

Connections::Connections(const std::vector<costmodel::Node>& nodes, const costmodel::NetworkModel& network,
                         std::uint64_t seed, PlatformNow platform)
    : nodes_(nodes), platform_(std::move(platform)), network_(network), seed_(seed) {
  if (network.jitter_s > 0 || network.initial_window_bytes) connections_.resize(nodes.size() * nodes.size());
}

double Connections::round_trip_s(int from_site, int to_site) const {
  return platform_().path(from_site, to_site).latency_s + platform_().path(to_site, from_site).latency_s;
}

Connections::Connection& Connections::connection(NodeId from, NodeId to) {
  return connections_[static_cast<std::size_t>(from) * nodes_.size() + static_cast<std::size_t>(to)];
}

double Connections::cap_bytes_per_s(NodeId from, NodeId to) const {
  const int a = site(from), b = site(to);
  return costmodel::flow_cap_bytes_per_s(network_, round_trip_s(a, b),
                                         platform_().path(a, b).connection_bytes_per_s);
}

double Connections::draw(NodeId from, NodeId to, std::uint64_t which) const {
  const std::uint64_t pair =
      static_cast<std::uint64_t>(from) * nodes_.size() + static_cast<std::uint64_t>(to);
  const std::uint64_t seed = stream_ == 0 ? seed_ : seed_ ^ mixed(stream_);
  return static_cast<double>(mixed(mixed(mixed(seed) ^ pair) ^ which) >> 11) * 0x1p-53;
}

void Connections::restart(std::uint64_t stream) {
  stream_ = stream;
  connections_.assign(connections_.size(), {});
}

void Connections::close_all() {
  for (Connection& connection : connections_) {
    const std::uint64_t draws = connection.draws;
    connection = {};
    connection.draws = draws;
  }
}

double Connections::share_bytes_per_s(NodeId from, NodeId to, const ConcurrentFlows& concurrent) const {
  const int a = site(from), b = site(to);
  const platforms::Platform& platform = platform_();
  return std::min({platform.sites[static_cast<std::size_t>(a)].uplink_bytes_per_s / concurrent.sent,
                   platform.route_bytes_per_s(a, b),
                   platform.sites[static_cast<std::size_t>(b)].downlink_bytes_per_s / concurrent.received,
                   cap_bytes_per_s(from, to)});
}

Wait Connections::wait(NodeId from, NodeId to, std::int64_t bytes, const ConcurrentFlows& concurrent,
                       double now_s) {
  const int a = site(from), b = site(to);
  if (a == b) return {};  // inside a site
  double wait_s = platform_().path(a, b).latency_s;
  if (connections_.empty()) return {wait_s, {}};
  Connection& used = connection(from, to);
  if (network_.jitter_s > 0) {
    wait_s += network_.jitter_s * draw(from, to, used.draws++);
  }
  const double round_trip = round_trip_s(a, b);
  Ramp ramp{0, bytes, share_bytes_per_s(from, to, concurrent), 0};
  if (round_trip > 0) used.pipe_bytes = std::max(used.pipe_bytes, ramp.bytes_per_s * round_trip);
  if (network_.initial_window_bytes) {
    if (used.flows == 0) used.window_bytes = costmodel::first_window_bytes(network_);
    if (used.outstanding_bytes == 0)
      used.window_bytes =
          costmodel::after_idle_bytes(network_, used.window_bytes, now_s - used.last_sent_s, round_trip);
    ramp.window_bytes = used.window_bytes;
    ramp.waited_s = costmodel::slow_start_s(network_, ramp.window_bytes, static_cast<double>(bytes),
                                            ramp.bytes_per_s, round_trip);
  }
  ++used.flows;
  used.outstanding_bytes += bytes;
  used.last_sent_s = std::max(used.last_sent_s, now_s);
  return {wait_s + ramp.waited_s, ramp};
}

double Connections::longer_ramp_s(NodeId from, NodeId to, Ramp& ramp, const ConcurrentFlows& concurrent) {
  const double now_bytes_per_s = share_bytes_per_s(from, to, concurrent);
  if (!network_.initial_window_bytes || now_bytes_per_s <= ramp.bytes_per_s) return 0;
  const double round_trip = round_trip_s(site(from), site(to));
  const double all_s = costmodel::slow_start_s(network_, ramp.window_bytes, static_cast<double>(ramp.bytes),
                                               now_bytes_per_s, round_trip);
  const double longer_s = std::max(0.0, all_s - ramp.waited_s);
  Connection& used = connection(from, to);
  used.pipe_bytes = std::max(used.pipe_bytes, now_bytes_per_s * round_trip);
  ramp.bytes_per_s = now_bytes_per_s;
  ramp.waited_s += longer_s;
  return longer_s;
}

void Connections::ended(NodeId from, NodeId to, std::int64_t bytes, double now_s) {
  const int a = site(from), b = site(to);
  if (connections_.empty() || a == b) return;
  Connection& used = connection(from, to);
  used.outstanding_bytes -= bytes;
  used.last_sent_s = std::max(used.last_sent_s, now_s - platform_().path(a, b).latency_s);
  const double most_bytes = costmodel::kWindow_pipes * used.pipe_bytes;
  // Each acknowledged byte widens the window by one byte (slow start, RFC 5681).
  used.window_bytes =
      std::max(used.window_bytes, std::min(most_bytes, used.window_bytes + static_cast<double>(bytes)));
}

}  // namespace fomoe::sim
