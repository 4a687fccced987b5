// Implements the measurements that check.hpp declares.
#include <algorithm>
#include <cmath>

#include "platforms/wan/check/check.hpp"
#include "platforms/wan/check/probes.hpp"
#include "platforms/wan/relay/relay.hpp"
#include "platforms/wan/relay/tasks.hpp"

namespace fomoe::platforms::wan {

namespace {

constexpr double kMostWindow_bytes = 8e6;  // the window if nothing limits the rate
constexpr double kPace = 1.1;
constexpr int kPings = 9;
constexpr int kAttempts = 3;  // each takes twice as long as the one before; the last one counts

/// The pairs of the round with shift s, in which every site k sends to site k + s. Each uplink and downlink
/// then carries one connection only, so that the expected rate does not depend on how TCP shares links. All
/// shifts together cover all pairs.
std::vector<std::pair<int, int>> round_of(int sites, int shift) {
  std::vector<std::pair<int, int>> pairs;
  for (int from = 0; from < sites; ++from) pairs.emplace_back(from, (from + shift) % sites);
  return pairs;
}

class Measurement {
 public:
  Measurement(const Layout& layout, const std::vector<SiteNetwork>& sites, const Cores& cores)
      : layout_(layout), sites_(sites), cores_(cores) {
    // All namespaces have the same setting, so this process's own is read.
    segment_bytes_ = payload_per_segment(layout.mtu, network_setting("tcp_timestamps") != "0");
    for (int from = 0; from < layout.size(); ++from)
      for (int to = 0; to < layout.size(); ++to)
        if (from != to) longest_s_ = std::max(longest_s_, layout.round_trip_s(from, to, 0));
  }

  /// Measures these pairs at the same time. Returns rates in bytes per second, including IP and TCP headers.
  std::vector<double> rates(const std::vector<std::pair<int, int>>& pairs, double warm_up_s,
                            double measured_s) {
    std::vector<Task> tasks;
    for (const auto& [from, to] : pairs) {
      RateProbe probe;
      probe.port = next_port();
      probe.window_bytes = window_bytes(from, to);
      // A piece is large enough that the receiver's reports cost little, and small enough to fill the window
      // smoothly.
      probe.piece_bytes =
          segment_bytes_ * std::clamp(std::floor(probe.window_bytes / segment_bytes_ / 16), 1.0, 32.0);
      const double asked = layout_.rate_bytes_per_s(from, to);
      probe.pace_bytes_per_s = std::isfinite(asked) ? kPace * asked : 0;
      probe.warm_up_s = warm_up_s;
      probe.measured_s = measured_s;
      const std::uint32_t address = layout_.sites[static_cast<std::size_t>(to)].address;
      tasks.push_back({to, [=] { return receive_tcp(probe); }});
      tasks.push_back({from, [=] { return send_tcp(address, probe); }, true});
    }
    const std::vector<double> answers = run_tasks(sites_, cores_, tasks);
    std::vector<double> result;
    for (std::size_t i = 0; i < pairs.size(); ++i)
      result.push_back(answers[2 * i] * layout_.mtu / segment_bytes_);
    pause_for(0.02 + 2 * longest_s_);  // until the queues are empty
    return result;
  }

  /// Repeats the measurement for longer if a rate misses the expected one, since other processes may have
  /// kept the machine busy.
  std::vector<double> settled_rates(const std::vector<std::pair<int, int>>& pairs) {
    std::vector<double> measured;
    for (int attempt = 0; attempt < kAttempts; ++attempt) {
      const double longer = std::pow(2.0, attempt);
      measured = rates(pairs, longer * (0.2 + 12 * longest_s_), longer * (0.4 + 4 * longest_s_));
      bool all = true;
      for (std::size_t i = 0; i < pairs.size(); ++i) {
        const double asked = layout_.rate_bytes_per_s(pairs[i].first, pairs[i].second);
        all = all && !rate_misses(asked, measured[i]);
      }
      if (all) break;
    }
    return measured;
  }

  std::vector<double> settled_round_trips_s(const std::vector<std::pair<int, int>>& pairs) {
    std::vector<double> measured_s;
    for (int attempt = 0; attempt < kAttempts; ++attempt) {
      measured_s = round_trips_s(pairs, kPings << attempt);
      bool all = true;
      for (std::size_t i = 0; i < pairs.size(); ++i) {
        const double asked_s = layout_.round_trip_s(pairs[i].first, pairs[i].second, kPing_wire_bytes);
        all = all && !round_trip_misses(asked_s, measured_s[i]);
      }
      if (all) break;
    }
    return measured_s;
  }

 private:
  std::vector<double> round_trips_s(const std::vector<std::pair<int, int>>& pairs, int pings) {
    std::vector<Task> tasks;
    for (const auto& [from, to] : pairs) {
      const std::uint16_t port = next_port();
      const std::uint32_t address = layout_.sites[static_cast<std::size_t>(to)].address;
      tasks.push_back({to, [=] { return echo_udp(port); }, true, true});
      tasks.push_back({from, [=] { return ping_udp(address, port, pings); }, false, true});
    }
    const std::vector<double> answers = run_tasks(sites_, cores_, tasks);
    std::vector<double> result;
    for (std::size_t i = 0; i < pairs.size(); ++i) result.push_back(answers[2 * i + 1]);
    return result;
  }

  /// The bandwidth-delay product of the path, plus half of its smallest queue.
  [[nodiscard]] double window_bytes(int from, int to) const {
    double queue_bytes = kMostWindow_bytes;
    for (const int link : layout_.route(from, to).links)
      queue_bytes = std::min(queue_bytes, layout_.links[static_cast<std::size_t>(link)].queue_bytes);
    const double path_bytes =
        layout_.rate_bytes_per_s(from, to) * layout_.round_trip_s(from, to, layout_.mtu);
    return std::isfinite(path_bytes) ? path_bytes + queue_bytes / 2 : kMostWindow_bytes;
  }

  /// A new port for each measurement, so that late packets of one connection cannot reach the next one.
  std::uint16_t next_port() {
    port_ = port_ >= 30000 ? 20001 : port_ + 1;
    return static_cast<std::uint16_t>(port_);
  }

  const Layout& layout_;
  const std::vector<SiteNetwork>& sites_;
  const Cores& cores_;
  double segment_bytes_ = 1;
  double longest_s_ = 0;
  int port_ = 20000;
};

}  // namespace

double measure_relay(const Layout& layout, const std::vector<SiteNetwork>& sites, const Cores& cores,
                     int relay_core) {
  const Layout unlimited = without_limits(layout);
  const Relay relay(unlimited, sites, relay_core);
  double sum = 0;
  for (const double rate : Measurement(unlimited, sites, cores).rates(round_of(layout.size(), 1), 0.2, 0.6))
    sum += rate;
  return sum;
}

std::vector<PairCheck> measure_pairs(const Layout& layout, const std::vector<SiteNetwork>& sites,
                                     const Cores& cores) {
  const int count = layout.size();
  std::vector<PairCheck> table(static_cast<std::size_t>(count * count));
  const auto pair_of = [&](int from, int to) -> PairCheck& {
    return table[static_cast<std::size_t>(from * count + to)];
  };
  Measurement measurement(layout, sites, cores);
  for (int from = 0; from < count; ++from) {
    for (int to = 0; to < count; ++to) {
      if (from == to) continue;
      PairCheck& pair = pair_of(from, to);
      pair.from = from;
      pair.to = to;
      pair.asked_bytes_per_s = layout.rate_bytes_per_s(from, to);
      pair.asked_round_trip_s = layout.round_trip_s(from, to, kPing_wire_bytes);
      // The round trip is the same from either end.
      pair.round_trip_s.alone = from < to ? measurement.settled_round_trips_s({{from, to}})[0]
                                          : pair_of(to, from).round_trip_s.alone;
      pair.bytes_per_s.alone = measurement.settled_rates({{from, to}})[0];
    }
  }
  for (int shift = 1; shift < count; ++shift) {
    const auto pairs = round_of(count, shift);
    const std::vector<double> round_trips_s = measurement.settled_round_trips_s(pairs);
    const std::vector<double> rates = measurement.settled_rates(pairs);
    for (std::size_t i = 0; i < pairs.size(); ++i) {
      PairCheck& pair = pair_of(pairs[i].first, pairs[i].second);
      pair.round_trip_s.together = round_trips_s[i];
      pair.bytes_per_s.together = rates[i];
    }
  }
  std::erase_if(table, [](const PairCheck& pair) { return pair.from == pair.to; });
  return table;
}

}  // namespace fomoe::platforms::wan
