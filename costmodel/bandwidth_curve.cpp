#include "costmodel/bandwidth_curve.hpp"

#include <cmath>

#include "costmodel/closed_form.hpp"

namespace fomoe::costmodel {

namespace {
constexpr int kHalvesOfOctaves = 8;  // 2^(8/2) = 16
}

void scale_link_rates(Scenario& scenario, double factor) {
  for (platforms::Site& site : scenario.platform.sites) {
    site.uplink_bytes_per_s *= factor;
    site.downlink_bytes_per_s *= factor;
  }
  for (platforms::Path& path : scenario.platform.paths) path.bandwidth_bytes_per_s *= factor;
  for (platforms::Backbone& backbone : scenario.platform.backbones) backbone.bandwidth_bytes_per_s *= factor;
  for (platforms::LinkChange& change : scenario.platform.changes) {
    if (change.bandwidth_bytes_per_s) *change.bandwidth_bytes_per_s *= factor;
  }
}

std::vector<BandwidthPoint> bandwidth_curve(const Scenario& scenario) {
  Scenario bare = scenario;  // what the times do not depend on
  bare.prices.reset();
  bare.quality.reset();
  bare.failures.reset();
  std::vector<BandwidthPoint> curve;
  for (int i = -kHalvesOfOctaves; i <= kHalvesOfOctaves; ++i) {
    const double factor = std::exp2(i / 2.0);
    Scenario scaled = bare;
    scale_link_rates(scaled, factor);
    const RunReport report = closed_form(scaled);
    curve.push_back({factor, report.wall_clock_s, report.compute_utilization});
  }
  return curve;
}

}  // namespace fomoe::costmodel
