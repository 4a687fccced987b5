// The network model: effects between the raw link rates of a platform and the payload rate of a flow. Every
// effect is off by default.
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "costmodel/inputs/enum_names.hpp"
#include "platforms/platform.hpp"

namespace fomoe::costmodel {

/// How a ring is simulated. stepwise: every chunk is a flow, and each step waits for the previous one. fluid:
/// one flow per hop, as if the ring were pipelined in slices so fine that the transfers hide the latency.
enum class RingModel { stepwise, fluid };
constexpr auto enum_names(RingModel) {
  return std::to_array<EnumName<RingModel>>({{RingModel::stepwise, "stepwise"}, {RingModel::fluid, "fluid"}});
}

/// TCP congestion control. reno, cubic: every loss shrinks the window. bbr: the sender paces at the bandwidth
/// that it has measured, whatever is lost (Cardwell et al. 2016). cubic is the default of Linux.
enum class CongestionControl { cubic, reno, bbr };
constexpr auto enum_names(CongestionControl) {
  return std::to_array<EnumName<CongestionControl>>({{CongestionControl::cubic, "cubic"},
                                                     {CongestionControl::reno, "reno"},
                                                     {CongestionControl::bbr, "bbr"}});
}

/// Where data wait for the uplink. host: in the site's own hosts, whose kernel lets a connection have little
/// there, so that it is never full. router: in a router, where acknowledgements wait behind data, and which
/// drops what finds no room.
enum class UplinkQueue { host, router };
constexpr auto enum_names(UplinkQueue) {
  return std::to_array<EnumName<UplinkQueue>>({{UplinkQueue::host, "host"}, {UplinkQueue::router, "router"}});
}

/// Values of the terms that the scenario does not give. ideal: off. linux: as in linux_host().
enum class Host { ideal, linux_tcp };
constexpr auto enum_names(Host) {
  return std::to_array<EnumName<Host>>({{Host::ideal, "ideal"}, {Host::linux_tcp, "linux"}});
}

struct NetworkModel {
  double bandwidth_efficiency = 1;  // (0, 1]: share of a link's rate available to payload
  double background_share = 0;      // [0, 1): share of every link that other traffic always takes
  double latency_factor = 1;        // factor on every latency
  double jitter_s = 0;              // upper bound of the uniform random latency added to every flow
  RingModel ring_model = RingModel::stepwise;
  double call_overhead_s = 0;  // delay of each node before each call of a collective
  /// Rate at which a node copies, encodes and adds payloads before it sends them; it does not send meanwhile.
  /// Empty: this takes no time.
  std::optional<double> payload_bytes_per_s;
  /// The step profile that measured it; empty: the scenario gives it, or nothing does.
  std::string payload_rate_profile;

  CongestionControl congestion_control = CongestionControl::cubic;

  // TCP parameters. A flow carries what one collective sends from one site to another, over `streams`
  // connections of each pair of machines (connections_of).
  int streams = 1;
  std::optional<double> tcp_window_bytes;      // maximum window of one stream
  std::optional<double> send_buffer_bytes;     // largest send buffer of one stream's socket
  std::optional<double> receive_buffer_bytes;  // largest receive buffer of one stream's socket
  std::optional<double> loss_rate;             // share of the segments that is lost
  double segment_bytes = 1460;                 // segment size for the loss_rate formula
  std::optional<double> initial_window_bytes;  // of one stream; connections are then simulated
  bool idle_restart = false;                   // idle periods shrink the window (RFC 2861); not with bbr
  /// Steps of a collective for which a receiver announces that it is ready before their turn; only where
  /// connections are simulated, and in the trainer.
  int receives_ahead = 1;

  // Queues of links; only with slow start.
  UplinkQueue uplink_queue = UplinkQueue::host;
  double queue_bdp = 1;  // room of a queue, in rates × longest round trips; at least 256 KiB

  /// For reports: the keys of the parameters that `fomoe calibrate` fitted ("latency_factor"), and the file
  /// of the measurements.
  std::vector<std::string> calibrated;
  std::string calibration;  // "links.json"
};

/// Share of a link's rate that congestion control leaves to payload where connections are not simulated: 1
/// unless bbr. BBR sends lost segments
/// again, so with the loss rate p the share is:
///   (1 − p) · (1 − 0.2 ÷ 10)
/// The second factor is the time outside ProbeRTT: for 0.2 s in every 10 s, a sender sends next to nothing,
/// so that queues empty, and measures the round trip again (Cardwell et al. 2016).
double congestion_share(const NetworkModel& network);

/// Share of a link's rate that other traffic and congestion control leave: (1 − background) ·
/// congestion_share.
double free_share(const NetworkModel& network);

/// Largest loss rate for which this model of BBR holds: above it, BBR version 1 slows down as well.
inline constexpr double kMostBbrLoss = 0.15;

/// The platform with the network model applied: rates × bandwidth_efficiency × free_share(), latencies ×
/// latency_factor.
platforms::Platform effective_platform(const platforms::Platform& raw, const NetworkModel& network);
/// Likewise, but where windows are counted, without congestion_share(): connections leave it by what they do.
platforms::Platform platform_of_connections(const platforms::Platform& raw, NetworkModel network);

/// Share of its send buffer that a Linux socket has in flight at most. A socket that was full takes data
/// again when the free space is at least half of the space in use (sk_stream_is_writeable in the kernel's
/// include/net/sock.h), that is when at most 2/3 of the buffer are in use.
inline constexpr double kBufferInFlight = 2.0 / 3;

/// Connections of a flow over the path: those of one pair of machines, times their number.
int connections_of(const NetworkModel& network, const platforms::Path& path);

/// The parts of a message, each on a connection of its own: at least 64 KiB each, so that a small message
/// does not wait for several connections (trainer/comm/gloo_transport.cpp).
std::int64_t parts_of_message(std::int64_t bytes, std::int64_t connections);

/// Upper bound of one flow's rate on idle links, in bytes per second; unlimited if no term is switched on:
///   connections · min(window, 1/2 · receive buffer, 2/3 · send buffer, loss_window_bytes()) ÷ RTT
/// What one connection was measured to carry
/// (platforms::Path::connection_bytes_per_s) includes the effect of its buffers: if it is known, it replaces
/// the terms of both buffers.
double flow_cap_bytes_per_s(const NetworkModel& network, double round_trip_s,
                            const platforms::Path& path = {});

/// The least of the limits that shared links have for each connection, for a flow from one site to another;
/// unlimited if there is none.
double shared_cap_bytes_per_s(const NetworkModel& network, const platforms::Platform& platform, int from,
                              int to);

/// Whether send buffers, or what connections were measured to carry, limit flows of the platform.
bool limits_connections(const NetworkModel& network, const platforms::Platform& platform);

/// The network model of an ordinary Linux host:
///   segment_size: the packet less 52 bytes for IPv4 and TCP with timestamps
///   bandwidth_efficiency: payload ÷ (packet + 14 of Ethernet + 12, a segment's share of the acknowledgements
///     in the opposite direction), to three digits: 0.949 with packets of 1500 bytes, 0.991 with 9000
///   initial_window 10 segments (RFC 6928)
///   idle_restart, Linux's default (net.ipv4.tcp_slow_start_after_idle)
///   send_buffer 4 MiB, to which Linux enlarges the send buffer of a socket by default (net.ipv4.tcp_wmem in
///     the kernel's Documentation/networking/ip-sysctl.rst)
///   receive_buffer 6 MiB (net.ipv4.tcp_rmem in the same file)
NetworkModel linux_host(double packet_bytes = 1500);

/// Mean window in bytes that random losses leave to one connection, with the loss rate p and segments of
/// `segment_bytes`; unlimited without losses and with bbr.
///   reno:  segment · √(3 ÷ 2p)  (Mathis et al. 1997)
///   cubic: segment · max(√(3 ÷ 2p), (C(3 + β) ÷ 4(1 − β))^¼ · (RTT ÷ p)^¾), C = 0.4, β = 0.7, RTT in
///          seconds  (RFC 9438, sections 4.3 and 5)
double loss_window_bytes(const NetworkModel& network, double round_trip_s);

struct NetworkTerm {
  std::string key;   // "latency_factor"
  std::string text;  // with its value: "all latencies are multiplied by 1.1"
};
/// The effects that are switched on; empty if all are at their defaults.
std::vector<NetworkTerm> switched_on(const NetworkModel& network);

/// Whether `fomoe calibrate` fitted the parameter with that key.
bool is_calibrated(const NetworkModel& network, const std::string& key);

}  // namespace fomoe::costmodel
