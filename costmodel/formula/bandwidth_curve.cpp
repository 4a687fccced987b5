#include "costmodel/formula/bandwidth_curve.hpp"

#include <cmath>

#include "costmodel/formula/closed_form.hpp"

namespace fomoe::costmodel {

namespace {
constexpr int kHalfOctaves = 8;  // 2^(8/2) = 16
}

std::vector<BandwidthPoint> bandwidth_curve(const Scenario& scenario, const Speeds& speeds_of) {
  Scenario bare = scenario;  // without inputs that do not affect the times
  bare.prices.reset();
  bare.quality.reset();
  bare.failures.reset();
  std::vector<double> factors;
  std::vector<Scenario> scenarios;
  for (int i = -kHalfOctaves; i <= kHalfOctaves; ++i) {
    factors.push_back(std::exp2(i / 2.0));
    scenarios.push_back(bare);
    scenarios.back().platform = platforms::scaled_bandwidth(bare.platform, factors.back());
  }
  const std::vector<Speed> speeds = speeds_of(scenarios);
  std::vector<BandwidthPoint> curve;
  for (std::size_t i = 0; i < factors.size(); ++i)
    curve.push_back({factors[i], speeds[i].wall_clock_s, speeds[i].compute_utilization});
  return curve;
}

std::vector<BandwidthPoint> bandwidth_curve(const Scenario& scenario) {
  return bandwidth_curve(scenario, [](const std::vector<Scenario>& scenarios) {
    std::vector<Speed> speeds;
    for (const Scenario& one : scenarios) {
      const RunReport report = closed_form(one);
      speeds.push_back({report.wall_clock_s, report.compute_utilization});
    }
    return speeds;
  });
}

}  // namespace fomoe::costmodel
