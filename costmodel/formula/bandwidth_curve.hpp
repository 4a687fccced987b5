// Wall clock as a function of the bandwidth between the sites, with all links scaled together.
#pragma once
#include <functional>
#include <vector>

#include "costmodel/inputs/scenario.hpp"

namespace fomoe::costmodel {

struct BandwidthPoint {
  double rate_factor = 1;  // rate of every link ÷ its rate in the scenario
  double wall_clock_s = 0;
  double compute_utilization = 0;
};

/// The figures of a report that the curve shows.
struct Speed {
  double wall_clock_s = 0;
  double compute_utilization = 0;
};
/// Computes the speeds of independent scenarios, in their order.
using Speeds = std::function<std::vector<Speed>(const std::vector<Scenario>&)>;

/// The curve at rate factors 2^(i/2) from 1/16 to 16, in ascending order; one of them is 1.
std::vector<BandwidthPoint> bandwidth_curve(const Scenario& scenario, const Speeds& speeds_of);

/// The curve by the closed form.
std::vector<BandwidthPoint> bandwidth_curve(const Scenario& scenario);

}  // namespace fomoe::costmodel
