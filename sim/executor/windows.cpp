#include "sim/executor/windows.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "costmodel/inputs/segments.hpp"
#include "sim/tcp/tcp_network.hpp"

namespace fomoe::sim {

using costmodel::Timeline;

namespace {

/// The bursts that are simulated of that many bytes from one site to another, where the sites send to and
/// hear from so many others: a slow connection sends small bursts (burst_bytes()), and a line stands for
/// several connections (TcpNetwork).
double bursts(double bytes, const platforms::Platform& platform, int from, int to, int sends_to, int hears,
              const costmodel::NetworkModel& network) {
  double bytes_per_s = std::min({platform.sites[static_cast<std::size_t>(from)].uplink_bytes_per_s / sends_to,
                                 platform.sites[static_cast<std::size_t>(to)].downlink_bytes_per_s / hears,
                                 platform.path(from, to).bandwidth_bytes_per_s});
  for (const int link : platform.shared_by(from, to))
    bytes_per_s =
        std::min(bytes_per_s, platform.shared_links[static_cast<std::size_t>(link)].bandwidth_bytes_per_s);
  const double round_trip_s = platform.path(from, to).latency_s + platform.path(to, from).latency_s;
  const int connections = costmodel::connections_of(network, platform.path(from, to));
  const double cap = costmodel::flow_cap_bytes_per_s(network, round_trip_s, platform.path(from, to));
  const double one_bytes_per_s = std::min(bytes_per_s, cap) / connections;
  double burst = costmodel::burst_bytes(one_bytes_per_s, network.segment_bytes);
  // No burst exceeds the window. A measured rate is no window.
  if (round_trip_s > 0 && !std::isfinite(platform.path(from, to).connection_bytes_per_s))
    burst = std::min(burst, std::max(1.0, cap / connections * round_trip_s));
  const double alike = static_cast<double>(connections) / TcpNetwork::lines(connections);
  return bytes / alike / burst;
}

/// The plan with a share of the elements of each payload.
costmodel::Plan shortened(const costmodel::Plan& plan, double share) {
  costmodel::Plan shorter = plan;
  shorter.round = [round = plan.round, share](std::int64_t index) {
    costmodel::RoundPlan whole = round(index);
    for (costmodel::Op& op : whole.ops) {
      auto* transfer = std::get_if<costmodel::Transfer>(&op.what);
      if (transfer == nullptr) continue;
      for (costmodel::Exchange& exchange : transfer->exchanges)
        for (costmodel::Payload& payload : exchange.payloads)
          payload.elements = std::llround(std::ceil(share * static_cast<double>(payload.elements)));
    }
    return whole;
  };
  return shorter;
}

}  // namespace

std::optional<double> long_run_rate(const costmodel::Plan& plan, std::int64_t round, double share,
                                    const platforms::Platform& with_windows,
                                    const platforms::Platform& without, const ComputeSeconds& seconds,
                                    const Options& options) {
  // Where they end differs by some round trips from one simulation to the next.
  constexpr double kFewestRoundTrips = 100;
  double longest_s = 0;
  for (int from = 0; from < without.size(); ++from)
    for (int to = 0; to < without.size(); ++to)
      if (from != to) longest_s = std::max(longest_s, without.path(from, to).latency_s);
  Options fluid = options;
  fluid.network.initial_window_bytes.reset();
  fluid.on_progress = {};
  const auto longer_s = [&](const platforms::Platform& platform, const Options& how) {
    const auto end_s = [&](double of_bytes) {
      return simulate(shortened(plan, of_bytes), {round}, platform, seconds, how).round_end_s.back();
    };
    return end_s(share) - end_s(share / 2);
  };
  const double fluid_s = longer_s(without, fluid);
  if (fluid_s <= kFewestRoundTrips * 2 * longest_s) return std::nullopt;
  return fluid_s / std::max(fluid_s, longer_s(with_windows, options));
}

double windows_cost(const costmodel::Plan& plan, const Sequence& sequence,
                    const platforms::Platform& platform, const ComputeSeconds& seconds,
                    const Options& options) {
  constexpr double kFlowsPerBurst = 1.0 / 8;  // measured: 0.5 µs of 4 µs
  Options fluid = options;
  fluid.network.initial_window_bytes.reset();
  fluid.attendance = {};
  fluid.on_progress = {};
  const Timeline timeline = simulate(plan, sequence.rounds, platform, seconds, fluid);
  std::map<std::pair<int, int>, double> bytes;  // by sites
  for (const auto& [pair, sent] : timeline.sent.bytes)
    bytes[{plan.nodes[static_cast<std::size_t>(pair.first)].site,
           plan.nodes[static_cast<std::size_t>(pair.second)].site}] += sent;
  std::map<int, int> sends_to, hears;
  for (const auto& [sites, sent] : bytes) {
    if (sites.first == sites.second) continue;
    ++sends_to[sites.first];
    ++hears[sites.second];
  }
  double all = 0;
  for (const auto& [sites, sent] : bytes)
    if (sites.first != sites.second)
      all += bursts(sent, platform, sites.first, sites.second, sends_to[sites.first], hears[sites.second],
                    options.network);
  return (all * kFlowsPerBurst + static_cast<double>(timeline.flows.size() + timeline.intervals.size())) /
         static_cast<double>(timeline.rounds.size());
}

std::vector<Timeline> simulate_typical(const costmodel::Plan& plan, const std::vector<Sequence>& sequences,
                                       const platforms::Platform& platform, const ComputeSeconds& seconds,
                                       const Options& options, int times, EndRange& range) {
  std::vector<Sequence> all;
  for (const Sequence& sequence : sequences) {
    for (int i = 0; i < times; ++i) {
      all.push_back(sequence);
      all.back().stream += static_cast<std::uint64_t>(i);
    }
  }
  std::vector<Timeline> timelines = simulate_each(plan, all, platform, seconds, options), typical;
  double low_s = 0, high_s = 0, typical_s = 0;
  for (std::size_t s = 0; s < sequences.size(); ++s) {
    const auto begin = timelines.begin() + static_cast<std::ptrdiff_t>(s) * times, end = begin + times;
    std::sort(begin, end, [](const Timeline& a, const Timeline& b) {
      return a.round_end_s.back() < b.round_end_s.back();
    });
    low_s += begin->round_end_s.back();
    high_s += (end - 1)->round_end_s.back();
    typical.push_back(std::move(*(begin + times / 2)));
    typical_s += typical.back().round_end_s.back();
  }
  if (typical_s > 0) range = {low_s / typical_s, high_s / typical_s};
  return typical;
}

}  // namespace fomoe::sim
