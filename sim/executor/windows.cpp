#include "sim/executor/windows.hpp"

#include <algorithm>
#include <utility>

namespace fomoe::sim {

using costmodel::Timeline;

double windows_cost(const costmodel::Plan& plan, std::int64_t round, const platforms::Platform& platform,
                    const ComputeSeconds& seconds, const Options& options) {
  constexpr double kUsualBurst_bytes = 32e3, kFlowsPerBurst = 1.0 / 8;  // measured: 0.5 µs of 4 µs
  Options fluid = options;
  fluid.network.initial_window_bytes.reset();
  fluid.attendance = {};
  fluid.on_progress = {};
  const Timeline timeline = simulate(plan, {round}, platform, seconds, fluid);
  double bytes = 0;
  for (const auto& [pair, sent] : timeline.sent.bytes)
    if (plan.nodes[static_cast<std::size_t>(pair.first)].site !=
        plan.nodes[static_cast<std::size_t>(pair.second)].site)
      bytes += sent;
  return bytes / kUsualBurst_bytes * kFlowsPerBurst +
         static_cast<double>(timeline.flows.size() + timeline.intervals.size());
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
