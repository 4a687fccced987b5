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

/// TCP congestion control. loss_based (Reno, CUBIC): every loss shrinks the window. bbr: the sender paces at
/// the bandwidth that it has measured, whatever is lost (Cardwell et al. 2016).
enum class CongestionControl { loss_based, bbr };
constexpr auto enum_names(CongestionControl) {
  return std::to_array<EnumName<CongestionControl>>(
      {{CongestionControl::loss_based, "loss_based"}, {CongestionControl::bbr, "bbr"}});
}

struct NetworkModel {
  double bandwidth_efficiency = 1.0;  // (0, 1]: share of a link's rate available to payload
  double background_share = 0;        // [0, 1): share of every link that other traffic always takes
  double latency_factor = 1;          // factor on every latency
  double jitter_s = 0;                // upper bound of the uniform random latency added to every flow
  RingModel ring_model = RingModel::stepwise;
  double call_overhead_s = 0;  // delay of each node before each call of a collective
  /// Rate at which a node copies, encodes and adds payloads before it sends them; it does not send meanwhile.
  /// Empty: this takes no time.
  std::optional<double> payload_bytes_per_s;

  /// Receivers post their receives early: a node that enters a round announces at once that it will receive
  /// the round's first messages, and announces the next messages with each message. An announcement takes the
  /// latency of the path. If false, bytes flow only when the receiver has reached the exchange and its step.
  bool early_receives = false;
  /// Send buffer of one connection in the sender's kernel. A send ends for its sender when at most this many
  /// bytes have yet to arrive; the messages from one node to another go out in order. With bbr this is the
  /// maximum that Linux allows (tcp_wmem); the buffer grows towards it with the bytes in flight
  /// (kBbrSendBuffer_pipes). Empty: a send ends when its last byte has arrived.
  std::optional<double> send_buffer_bytes;

  CongestionControl congestion_control = CongestionControl::loss_based;

  // TCP parameters. A flow carries what one collective sends from one site to another, over `streams`
  // connections.
  int streams = 1;
  std::optional<double> tcp_window_bytes;      // maximum window of one stream
  std::optional<double> loss_rate;             // share of the segments that is lost
  double segment_bytes = 1460;                 // segment size for the loss_rate formula
  std::optional<double> initial_window_bytes;  // initial window of one stream; switches slow start on
  bool idle_restart = false;                   // slow start repeats after an idle period

  /// For reports: the keys of the parameters that `fomoe calibrate` fitted ("latency_factor"), and the file
  /// of the measurements.
  std::vector<std::string> calibrated;
  std::string calibration;  // "links.json"
};

/// Interval of BBR's ProbeRTT: a sender that has seen no shorter round trip for 10 s sends next to nothing,
/// so that queues empty, and measures the round trip again (Cardwell et al. 2016).
inline constexpr double kBbrProbeEvery_s = 10;

/// BBR paces at the highest delivery rate of its last 10 round trips. In one round trip of 8 it tries a rate
/// 1.25 times as high (ProbeBW, Cardwell et al. 2016). During Startup it doubles the rate until three round
/// trips in a row have brought no increase.
inline constexpr double kBbrMemory_round_trips = 10, kBbrCycle_round_trips = 8, kBbrRaise = 1.25,
                        kBbrStartup_round_trips = 3;

/// Send buffer of a BBR connection, in multiples of the flow's bandwidth-delay product. The window of Startup
/// is 2.89 bandwidth-delay products, and Linux allocates 4.7 bytes for each byte of it (tcp_sndbuf_expand;
/// `ss` showed a median of 4.6 over 46 connections).
inline constexpr double kBbrSendBuffer_pipes = 13.6;

/// Send buffer of one connection whose bandwidth-delay product is at most `pipe_bytes`. `pipe_bytes` = 0
/// means that the product is not known yet or that the path has no latency. Requires
/// network.send_buffer_bytes.
///   loss_based: send_buffer_bytes; bbr: min(send_buffer_bytes, kBbrSendBuffer_pipes · pipe_bytes)
double send_buffer_bytes(const NetworkModel& network, double pipe_bytes);

/// Duration for which a ProbeRTT of BBR silences a sender. The bytes in flight are acknowledged, which takes
/// one round trip (RTT). Then 200 ms or one round trip pass, whichever is longer:
///   RTT + max(0.2 s, RTT)
double bbr_probe_s(double round_trip_s);

/// How ProbeRTT of BBR is accounted for. averaged: its mean reduces the link rate. one_by_one: the executor
/// simulates it for each flow.
enum class Senders { averaged, one_by_one };

/// Share of a link's rate that congestion control leaves to payload: 1 if loss_based. BBR sends lost segments
/// again, so with the loss rate p the share is:
///   (1 − p) · (1 − 0.2 ÷ 10)
/// The second factor applies to averaged senders only. It is the time outside ProbeRTT: a probe on short
/// paths takes 0.2 s in every 10 s.
double congestion_share(const NetworkModel& network, Senders senders = Senders::averaged);

/// Share of a link's rate that other traffic and congestion control leave: (1 − background) ·
/// congestion_share.
double free_share(const NetworkModel& network, Senders senders = Senders::averaged);

/// Largest loss rate for which this model of BBR holds: above it, BBR version 1 slows down as well.
inline constexpr double kMostBbrLoss = 0.15;

/// The platform with the network model applied: rates × bandwidth_efficiency × free_share(), latencies ×
/// latency_factor.
platforms::Platform effective_platform(const platforms::Platform& raw, const NetworkModel& network,
                                       Senders senders = Senders::averaged);

/// Upper bound of one flow's rate on idle links:
///   min(streams · window ÷ RTT, streams · segment ÷ RTT · √(3 ÷ 2p))
/// The second term is the throughput of loss-based TCP (Mathis et al. 1997) and does not apply to bbr.
/// Unlimited if neither term is switched on.
double flow_cap_bytes_per_s(const NetworkModel& network, double round_trip_s);

/// Time that slow start adds to a flow that could run at `bytes_per_s` (the flow's share of the links if
/// several flows start at once). RTT is the round trip time. The congestion window W grows by a factor g in
/// every round trip until W reaches the bandwidth-delay product of the flow, after n =
/// ⌈log_g(rate · RTT ÷ W)⌉ round trips. The added time is
///   n · RTT − W(gⁿ − 1) ÷ (g − 1) ÷ rate
/// A flow that ends before that waits for acknowledgements k times, where k is the largest number with
/// W(gᵏ − 1) ÷ (g − 1) < bytes. The remaining bytes then leave at once. The added time is
///   k · RTT − W(gᵏ − 1) ÷ (g − 1) ÷ rate
/// g is 2, or kBbrGrowth for bbr. At the start of the flow, W is streams · initial
/// window + (g − 1) · `sent_before_bytes`: the window has grown with every byte that the connection has sent
/// and that was acknowledged (RFC 5681, RFC 6928).
double slow_start_s(const NetworkModel& network, double sent_before_bytes, double bytes, double bytes_per_s,
                    double round_trip_s);

/// Growth of BBR's window per round trip in Startup, less than 2 because BBR paces its first bytes. This
/// value is an assumption: with 1.8 the first rounds of real runs have the measured length. On empty paths of
/// 200 ms, `ss -ti` showed windows one round trip apart, such as 22, 30, 54, 88, 170 segments, that grew
/// 1.67- to 1.71-fold over four round trips (six connections).
inline constexpr double kBbrGrowth = 1.8;

/// Idle time after which a connection repeats slow start if idle_restart is on: one retransmission time-out,
/// taken as two round trips and at least 200 ms.
double idle_limit_s(double round_trip_s);

/// Whether connections repeat slow start after an idle period. BBR never does: it keeps the rate that it has
/// measured.
bool restarts_when_idle(const NetworkModel& network);

struct NetworkTerm {
  std::string key;   // "latency_factor"
  std::string text;  // with its value: "all latencies are multiplied by 1.1"
};
/// The effects that are switched on; empty if all are at their defaults.
std::vector<NetworkTerm> switched_on(const NetworkModel& network);

/// Whether `fomoe calibrate` fitted the parameter with that key.
bool is_calibrated(const NetworkModel& network, const std::string& key);

}  // namespace fomoe::costmodel
