#include "costmodel/inputs/network_model.hpp"

#include <algorithm>
#include <cmath>
#include <sstream>

namespace fomoe::costmodel {

namespace {

constexpr double kMinProbe_s = 0.2;  // minimum duration of BBR's ProbeRTT

template <class... Parts>
std::string text_of(const Parts&... parts) {
  std::ostringstream text;
  (text << ... << parts);
  return text.str();
}

}  // namespace

double bbr_probe_s(double round_trip_s) { return round_trip_s + std::max(kMinProbe_s, round_trip_s); }

double send_buffer_bytes(const NetworkModel& network, double pipe_bytes) {
  const double most = *network.send_buffer_bytes;
  if (network.congestion_control == CongestionControl::loss_based || pipe_bytes <= 0) return most;
  return std::min(most, kBbrSendBuffer_pipes * pipe_bytes);
}

double congestion_share(const NetworkModel& network, Senders senders) {
  if (network.congestion_control == CongestionControl::loss_based) return 1;
  const double probing = senders == Senders::averaged ? kMinProbe_s / kBbrProbeEvery_s : 0;
  return (1 - network.loss_rate.value_or(0)) * (1 - probing);
}

double free_share(const NetworkModel& network, Senders senders) {
  return (1 - network.background_share) * congestion_share(network, senders);
}

platforms::Platform effective_platform(const platforms::Platform& raw, const NetworkModel& network,
                                       Senders senders) {
  platforms::Platform platform =
      platforms::scaled_bandwidth(raw, network.bandwidth_efficiency * free_share(network, senders));
  for (platforms::Path& path : platform.paths) path.latency_s *= network.latency_factor;
  for (platforms::LinkChange& change : platform.changes) {
    if (change.latency_s) *change.latency_s *= network.latency_factor;
  }
  return platform;
}

double flow_cap_bytes_per_s(const NetworkModel& network, double round_trip_s) {
  double cap = platforms::kUnlimited;
  if (round_trip_s <= 0) return cap;
  const double streams_per_s = network.streams / round_trip_s;
  if (network.tcp_window_bytes) cap = std::min(cap, streams_per_s * *network.tcp_window_bytes);
  if (network.loss_rate && network.congestion_control == CongestionControl::loss_based)
    cap = std::min(cap, streams_per_s * network.segment_bytes * std::sqrt(1.5 / *network.loss_rate));
  return cap;
}

double slow_start_s(const NetworkModel& network, double sent_before_bytes, double bytes, double bytes_per_s,
                    double round_trip_s) {
  if (!network.initial_window_bytes || round_trip_s <= 0) return 0;
  const double growth = network.congestion_control == CongestionControl::bbr ? kBbrGrowth : 2;
  double sent = 0, trips = 0;
  double in_flight = network.streams * *network.initial_window_bytes + (growth - 1) * sent_before_bytes;
  for (; in_flight < bytes_per_s * round_trip_s && sent + in_flight < bytes; ++trips) {
    sent += in_flight;
    in_flight *= growth;
  }
  return std::max(0.0, trips * round_trip_s - sent / bytes_per_s);
}

double idle_limit_s(double round_trip_s) { return std::max(0.2, 2 * round_trip_s); }

bool restarts_when_idle(const NetworkModel& network) {
  return network.idle_restart && network.congestion_control == CongestionControl::loss_based;
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
  if (network.early_receives)
    terms.push_back({"early_receives", "receivers post receives before the senders' data is ready"});
  if (network.send_buffer_bytes)
    terms.push_back({"send_buffer", text_of("a send completes for the sender when at most ",
                                            *network.send_buffer_bytes, " B are still in transit")});
  if (network.tcp_window_bytes)
    terms.push_back({"tcp_window", text_of("TCP windows limit the rate of a flow to ", network.streams, " × ",
                                           *network.tcp_window_bytes, " B ÷ round trip")});
  if (network.congestion_control == CongestionControl::bbr)
    terms.push_back(
        {"congestion_control",
         text_of("bbr: payload uses ", congestion_share(network),
                 " of every link on average, (1 − loss) × (1 − 0.2 s ÷ 10 s) (Cardwell et al. 2016)",
                 network.idle_restart ? "; BBR keeps its rate during idle periods, so idle_restart is ignored"
                                      : "")});
  else if (network.loss_rate)
    terms.push_back({"loss_rate", text_of("packet loss limits the rate of a flow to ", network.streams, " × ",
                                          network.segment_bytes, " B ÷ round trip × √(3 ÷ (2 × ",
                                          *network.loss_rate, ")) (Mathis et al. 1997)")});
  if (network.initial_window_bytes)
    terms.push_back(
        {"initial_window",
         text_of("slow start from ", network.streams, " × ", *network.initial_window_bytes,
                 " B, with growth by a factor of ",
                 network.congestion_control == CongestionControl::bbr ? "1.8" : "2", " every round trip",
                 restarts_when_idle(network) ? ", again after every idle period" : ", once per connection")});
  return terms;
}

bool is_calibrated(const NetworkModel& network, const std::string& key) {
  return std::find(network.calibrated.begin(), network.calibrated.end(), key) != network.calibrated.end();
}

}  // namespace fomoe::costmodel
