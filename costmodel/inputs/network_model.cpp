#include "costmodel/inputs/network_model.hpp"

#include <algorithm>
#include <cmath>
#include <sstream>

#include "platforms/each_path.hpp"

namespace fomoe::costmodel {

namespace {

constexpr double kBbrProbe_s = 0.2, kBbrProbeEvery_s = 10;  // ProbeRTT of BBR
constexpr double kCubicC = 0.4, kCubicBeta = 0.7;           // RFC 9438, sections 4.1 and 4.6

template <class... Parts>
std::string text_of(const Parts&... parts) {
  std::ostringstream text;
  (text << ... << parts);
  return text.str();
}

std::string loss_text(const NetworkModel& network) {
  const std::string reno = text_of("√(3 ÷ (2 × ", *network.loss_rate, "))");
  if (network.congestion_control == CongestionControl::reno) return reno + " (Mathis et al. 1997)";
  return text_of("max(", reno, ", 1.054 × (round trip ÷ ", *network.loss_rate, ")^¾) (RFC 9438)");
}

}  // namespace

double congestion_share(const NetworkModel& network) {
  if (network.congestion_control != CongestionControl::bbr) return 1;
  return (1 - network.loss_rate.value_or(0)) * (1 - kBbrProbe_s / kBbrProbeEvery_s);
}

double free_share(const NetworkModel& network) {
  return (1 - network.background_share) * congestion_share(network);
}

platforms::Platform effective_platform(const platforms::Platform& raw, const NetworkModel& network) {
  return platforms::changed_latencies(
      platforms::scaled_bandwidth(raw, network.bandwidth_efficiency * free_share(network)),
      [&](double latency_s) { return latency_s * network.latency_factor; });
}

platforms::Platform platform_of_connections(const platforms::Platform& raw, NetworkModel network) {
  if (network.initial_window_bytes) network.congestion_control = CongestionControl::reno;
  return effective_platform(raw, network);
}

NetworkModel linux_host(double packet_bytes) {
  constexpr double kHeaders_bytes = 52, kFrameAndAcknowledgement_bytes = 26;
  NetworkModel network;
  network.segment_bytes = packet_bytes - kHeaders_bytes;
  network.bandwidth_efficiency =
      std::round(1000 * network.segment_bytes / (packet_bytes + kFrameAndAcknowledgement_bytes)) / 1000;
  network.initial_window_bytes = 10 * network.segment_bytes;
  network.idle_restart = true;
  network.send_buffer_bytes = 4.0 * 1024 * 1024;
  network.receive_buffer_bytes = 6.0 * 1024 * 1024;
  return network;
}

double loss_window_bytes(const NetworkModel& network, double round_trip_s) {
  if (!network.loss_rate || network.congestion_control == CongestionControl::bbr)
    return platforms::kUnlimited;
  const double loss = *network.loss_rate;
  double segments = std::sqrt(1.5 / loss);
  if (network.congestion_control == CongestionControl::cubic)
    segments = std::max(segments, std::pow(kCubicC * (3 + kCubicBeta) / (4 * (1 - kCubicBeta)), 0.25) *
                                      std::pow(round_trip_s / loss, 0.75));
  return network.segment_bytes * segments;
}

int connections_of(const NetworkModel& network, const platforms::Path& path) {
  return path.machines * (path.streams > 0 ? path.streams : network.streams);
}

std::int64_t parts_of_message(std::int64_t bytes, std::int64_t connections) {
  constexpr std::int64_t kLeastPart_bytes = 1 << 16;
  return std::clamp<std::int64_t>(bytes / kLeastPart_bytes, 1, connections);
}

double flow_cap_bytes_per_s(const NetworkModel& network, double round_trip_s, const platforms::Path& path) {
  const double connection_bytes_per_s = path.connection_bytes_per_s;
  const int connections = connections_of(network, path);
  if (round_trip_s <= 0) return connections * connection_bytes_per_s;
  double window_bytes = std::min(network.tcp_window_bytes.value_or(platforms::kUnlimited),
                                 loss_window_bytes(network, round_trip_s));
  if (connection_bytes_per_s == platforms::kUnlimited) {
    if (network.receive_buffer_bytes)
      window_bytes = std::min(window_bytes, *network.receive_buffer_bytes / 2);
    if (network.send_buffer_bytes)
      window_bytes = std::min(window_bytes, kBufferInFlight * *network.send_buffer_bytes);
  }
  return connections * std::min(connection_bytes_per_s, window_bytes / round_trip_s);
}

double shared_cap_bytes_per_s(const NetworkModel& network, const platforms::Platform& platform, int from,
                              int to) {
  double cap = platforms::kUnlimited;
  for (const int index : platform.shared_by(from, to)) {
    const platforms::SharedLink& link = platform.shared_links[static_cast<std::size_t>(index)];
    if (link.per_flow) cap = std::min(cap, link.bandwidth_bytes_per_s);
  }
  return connections_of(network, platform.path(from, to)) * cap;
}

bool limits_connections(const NetworkModel& network, const platforms::Platform& platform) {
  bool limited = network.send_buffer_bytes.has_value();
  platforms::each_path(platform, [&](int /*from*/, int /*to*/, const platforms::Path& path) {
    limited = limited || path.connection_bytes_per_s < platforms::kUnlimited;
  });
  return limited;
}

std::vector<NetworkTerm> switched_on(const NetworkModel& network) {
  std::vector<NetworkTerm> terms;
  const NetworkModel off;
  if (network.background_share != off.background_share)
    terms.push_back({"background_share",
                     text_of("other traffic uses a share of ", network.background_share, " of every link")});
  if (network.latency_factor != off.latency_factor)
    terms.push_back({"latency_factor", text_of("all latencies are multiplied by ", network.latency_factor)});
  if (network.jitter_s != off.jitter_s)
    terms.push_back({"jitter", text_of("jitter adds up to ", network.jitter_s * 1e3,
                                       " ms to the latency of every flow")});
  if (network.ring_model != off.ring_model)
    terms.push_back({"ring_model", "fluid rings: each hop is one flow, and its latency counts once"});
  if (network.call_overhead_s != off.call_overhead_s)
    terms.push_back({"call_overhead", text_of("each collective call has an overhead of ",
                                              network.call_overhead_s * 1e3, " ms before it starts")});
  if (network.payload_bytes_per_s)
    terms.push_back({"payload_rate",
                     text_of("sites prepare and merge payloads at ", *network.payload_bytes_per_s * 8 / 1e9,
                             " Gbit/s before they send each part")});
  if (network.tcp_window_bytes)
    terms.push_back({"tcp_window", text_of("TCP windows limit each connection to ", *network.tcp_window_bytes,
                                           " B ÷ round trip")});
  if (network.send_buffer_bytes)
    terms.push_back({"send_buffer", text_of("send buffers limit each connection to 2/3 × ",
                                            *network.send_buffer_bytes, " B ÷ round trip")});
  if (network.receive_buffer_bytes)
    terms.push_back({"receive_buffer", text_of("receive buffers limit windows to half of ",
                                               *network.receive_buffer_bytes, " B")});
  if (network.uplink_queue != off.uplink_queue)
    terms.push_back({"uplink_queue", text_of("routers have a queue for ", network.queue_bdp,
                                             " × rate × round trip of each uplink, and drop what is more")});
  if (network.congestion_control == CongestionControl::bbr && network.initial_window_bytes)
    terms.push_back({"congestion_control",
                     "bbr: a connection paces at the rate that it has measured (Cardwell et al. 2016)"});
  else if (network.congestion_control == CongestionControl::bbr)
    terms.push_back(
        {"congestion_control",
         text_of("bbr: payload uses ", congestion_share(network),
                 " of every link on average, (1 − loss) × (1 − 0.2 s ÷ 10 s) (Cardwell et al. 2016)",
                 network.idle_restart ? "; BBR keeps its rate during idle periods, so idle_restart is ignored"
                                      : "")});
  else if (network.loss_rate)
    terms.push_back({"loss_rate", text_of("packet loss limits each connection to ", network.segment_bytes,
                                          " B ÷ round trip × ", loss_text(network))});
  if (network.loss_rate && network.congestion_control == CongestionControl::bbr &&
      network.initial_window_bytes)
    terms.push_back({"loss_rate", text_of("packets are lost with probability ", *network.loss_rate)});
  if (network.initial_window_bytes)
    terms.push_back({"initial_window",
                     text_of("slow start of each connection from ", *network.initial_window_bytes,
                             " B, doubled every round trip",
                             network.idle_restart && network.congestion_control != CongestionControl::bbr
                                 ? "; the window halves for each retransmission time-out of idleness"
                                 : "")});
  if (network.receives_ahead != off.receives_ahead && network.initial_window_bytes)
    terms.push_back({"receives_ahead", text_of("sites announce ", network.receives_ahead,
                                               " steps of a collective before their turn")});
  return terms;
}

bool is_calibrated(const NetworkModel& network, const std::string& key) {
  return std::find(network.calibrated.begin(), network.calibrated.end(), key) != network.calibrated.end();
}

}  // namespace fomoe::costmodel
