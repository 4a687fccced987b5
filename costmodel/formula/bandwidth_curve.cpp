#include "costmodel/formula/bandwidth_curve.hpp"

#include <cmath>
#include <utility>

namespace fomoe::costmodel {

namespace {
constexpr int kHalfOctaves = 8;  // 2^(8/2) = 16
}

std::vector<BandwidthPoint> bandwidth_curve(const Scenario& scenario,
                                            const std::function<RunReport(const Scenario&)>& report_of) {
  Scenario bare = scenario;  // without inputs that do not affect the times
  bare.prices.reset();
  bare.quality.reset();
  bare.failures.reset();
  std::vector<BandwidthPoint> curve;
  for (int i = -kHalfOctaves; i <= kHalfOctaves; ++i) {
    const double factor = std::exp2(i / 2.0);
    Scenario scaled = bare;
    scaled.platform = platforms::scaled_bandwidth(std::move(scaled.platform), factor);
    const RunReport report = report_of(scaled);
    curve.push_back({factor, report.wall_clock_s, report.compute_utilization});
  }
  return curve;
}

}  // namespace fomoe::costmodel
