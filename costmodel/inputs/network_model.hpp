// What stands between a raw link and a flow of payload. Every term is off until a scenario switches it on.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "platforms/platform.hpp"

namespace fomoe::costmodel {

/// How a ring is simulated: every chunk a flow, each step after the one before; or one flow a hop, as if the
/// ring were pipelined in slices so fine that latency hides behind bytes.
enum class RingModel { stepwise, fluid };
const char* to_string(RingModel model);

/// How TCP reacts. loss_based (Reno, CUBIC): every loss shrinks the window. bbr: paces at the bandwidth it
/// has measured, whatever is lost (Cardwell et al. 2016).
enum class CongestionControl { loss_based, bbr };
const char* to_string(CongestionControl control);

struct NetworkModel {
  double bandwidth_efficiency = 1.0;  // (0, 1]: share of a link's rate that payload can get
  double background_share = 0;        // [0, 1): of every link, taken by other traffic all the time
  double latency_factor = 1;          // on every latency
  double jitter_s = 0;                // every flow's latency grows by a uniform draw between 0 and this
  RingModel ring_model = RingModel::stepwise;
  double call_overhead_s = 0;  // at each node before each call of a collective
  /// Of what a node sends, before it is sent: it copies, encodes and adds payloads, and does not send
  /// meanwhile. Absent: in no time.
  std::optional<double> payload_bytes_per_s;

  /// A node that comes to a round says at once that it will receive that round's first messages, and with
  /// each message which ones come next; word of it takes the latency of the way. Otherwise bytes flow only
  /// when the receiver has come to the exchange and to its step.
  bool early_receives = false;
  /// Of one connection, in the sender's kernel: a send has ended for its sender when no more than this has
  /// yet to arrive, and what one node sends another goes out in order. With bbr it is the most that Linux
  /// allows (tcp_wmem), and grows to that with what the path holds: kBbrSendBuffer_pipes. Absent: when the
  /// last byte has arrived.
  std::optional<double> send_buffer_bytes;

  CongestionControl congestion_control = CongestionControl::loss_based;

  // TCP. A flow is what one collective sends from one site to another, over `streams` connections.
  int streams = 1;
  std::optional<double> tcp_window_bytes;      // of one stream, the largest
  std::optional<double> loss_rate;             // share of segments lost
  double segment_bytes = 1460;                 // with loss_rate
  std::optional<double> initial_window_bytes;  // of one stream; switches slow start on
  bool idle_restart = false;                   // slow start again after a silence

  /// For reports: the terms that `fomoe calibrate` fitted, by their keys ("latency_factor"), and to what.
  std::vector<std::string> calibrated;
  std::string calibration;  // "links.json"
};

/// A sender of bbr that has seen no shorter round trip for 10 s sends next to nothing, so that queues empty,
/// and looks again (Cardwell et al. 2016, ProbeRTT).
inline constexpr double kBbrProbeEvery_s = 10;

/// It paces its bytes by the most that came through within its last 10 round trips, and tries a quarter more
/// in one round trip of 8 (Cardwell et al. 2016, ProbeBW). At first it doubles what it tries, until three
/// round trips brought no more (Startup).
inline constexpr double kBbrMemory_round_trips = 10, kBbrCycle_round_trips = 8, kBbrRaise = 1.25,
                        kBbrStartup_round_trips = 3;

/// Its send buffer, in products of the flow's share of the rate and the round trip: start-up's window is 2.89
/// of them, and for each segment of it Linux takes 4.7 (tcp_sndbuf_expand; `ss`: median 4.6, of 46
/// connections).
inline constexpr double kBbrSendBuffer_pipes = 13.6;

/// Of one connection, of which a flow's share of the rate, times the round trip, is at most `pipe_bytes`; 0:
/// not known yet, as is anything where the path has no latency. Wants send_buffer_bytes.
///   loss_based: send_buffer_bytes; bbr: min(send_buffer_bytes, kBbrSendBuffer_pipes · pipe)
double send_buffer_bytes(const NetworkModel& network, double pipe_bytes);

/// How long nothing of such a sender comes: until what it has under way is acknowledged, and then 200 ms or a
/// round trip, whichever is longer.
///   RTT + max(0.2 s, RTT)
double bbr_probe_s(double round_trip_s);

/// What senders of bbr do beside sending: its mean share of a link's rate, or left to who executes single
/// flows.
enum class Senders { averaged, one_by_one };

/// Share of a link's rate that congestion control leaves: 1 if loss_based. With bbr, which sends lost
/// segments again:
///   (1 − p) · (1 − 0.2 ÷ 10), the second factor where senders are averaged; 0.2: of short paths
double congestion_share(const NetworkModel& network, Senders senders = Senders::averaged);

/// What other traffic and congestion control leave of a link: (1 − background) · congestion_share.
double free_share(const NetworkModel& network, Senders senders = Senders::averaged);

/// The most segments that bbr may lose: beyond, its first version slows down as well.
inline constexpr double kMostBbrLoss = 0.15;

/// The platform that flows see: rates · efficiency · free_share, latencies · factor.
platforms::Platform effective_platform(const platforms::Platform& raw, const NetworkModel& network,
                                       Senders senders = Senders::averaged);

/// The most that one flow gets however free the links are:
///   min(streams · window ÷ RTT, streams · segment ÷ RTT · √(3 ÷ 2p))
/// The second term is the throughput of loss-based TCP (Mathis et al. 1997). Unlimited where neither is on;
/// bbr has the first only.
double flow_cap_bytes_per_s(const NetworkModel& network, double round_trip_s);

/// Time that slow start adds to a flow that could run at `bytes_per_s`, its share of the links where several
/// start at once. The window W grows g-fold every RTT until it fills the pipe, after
/// n = ⌈log_g(rate · RTT ÷ W)⌉ round trips:
///   n · RTT − W(gⁿ − 1) ÷ (g − 1) ÷ rate
/// A flow that ends within the ramp waits for acknowledgements k times, the most with
/// W(gᵏ − 1) ÷ (g − 1) < bytes; what is left then goes out at once:
///   k · RTT − W(gᵏ − 1) ÷ (g − 1) ÷ rate
/// g is 2, of bbr kBbrGrowth. W: streams · initial window, and (g − 1) times what the connection has sent
/// since it started, each byte of which was acknowledged (RFC 5681, RFC 6928).
double slow_start_s(const NetworkModel& network, double sent_before_bytes, double bytes, double bytes_per_s,
                    double round_trip_s);

/// bbr paces what it starts with. Assumed: first rounds of real runs are as long as with 1.8, although
/// windows that `ss -ti` showed a round trip apart on empty paths of 200 ms, such as 22, 30, 54, 88, 170
/// segments, grew 1.67- to 1.71-fold over four round trips (six connections).
inline constexpr double kBbrGrowth = 1.8;

/// Silence after which a connection starts slowly again, where idle_restart is on: one retransmission
/// time-out, taken as two round trips and at least 200 ms.
double idle_limit_s(double round_trip_s);

/// bbr keeps the rate that it has measured, whatever idle_restart says.
bool restarts_when_idle(const NetworkModel& network);

struct NetworkTerm {
  std::string key;   // "latency_factor"
  std::string text;  // with its value: "latencies × 1.1"
};
/// The terms that are on; empty where all are at their defaults.
std::vector<NetworkTerm> switched_on(const NetworkModel& network);

/// Whether `fomoe calibrate` fitted the term of that key.
bool is_calibrated(const NetworkModel& network, const std::string& key);

}  // namespace fomoe::costmodel
