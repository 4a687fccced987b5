#include "costmodel/formula/bandwidth_curve.hpp"

#include <cmath>
#include <utility>

#include "costmodel/formula/closed_form.hpp"

namespace fomoe::costmodel {

namespace {

constexpr int kHalfOctaves = 8;  // 2^(8/2) = 16

std::vector<double> rate_factors() {
  std::vector<double> factors;
  for (int i = -kHalfOctaves; i <= kHalfOctaves; ++i) factors.push_back(std::exp2(i / 2.0));
  return factors;
}

/// The scenario without inputs that do not affect the times.
Scenario bare(Scenario scenario) {
  scenario.prices.reset();
  scenario.quality.reset();
  scenario.failures.reset();
  return scenario;
}

Scenario scaled(Scenario scenario, double factor) {
  scenario.platform = platforms::scaled_bandwidth(std::move(scenario.platform), factor);
  return scenario;
}

}  // namespace

std::vector<BandwidthPoint> bandwidth_curve(const Scenario& scenario, const Speeds& speeds_of) {
  const Scenario base = bare(scenario);
  const std::vector<double> factors = rate_factors();
  std::vector<Scenario> scenarios;
  for (const double factor : factors) scenarios.push_back(scaled(base, factor));
  const std::vector<Speed> speeds = speeds_of(scenarios);
  std::vector<BandwidthPoint> curve;
  for (std::size_t i = 0; i < factors.size(); ++i)
    curve.push_back({factors[i], speeds[i].wall_clock_s, speeds[i].compute_utilization});
  return curve;
}

std::vector<BandwidthPoint> bandwidth_curve(const Scenario& scenario) {
  const Scenario base = bare(scenario);
  std::vector<BandwidthPoint> curve;
  for (const double factor : rate_factors()) {
    const RunReport report = closed_form(scaled(base, factor));
    curve.push_back({factor, report.wall_clock_s, report.compute_utilization});
  }
  return curve;
}

}  // namespace fomoe::costmodel
