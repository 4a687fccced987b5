// The wall clock against the bandwidth between the sites: all links slower and faster together.
#pragma once
#include <vector>

#include "costmodel/inputs/scenario.hpp"

namespace fomoe::costmodel {

struct BandwidthPoint {
  double rate_factor = 1;  // every link's rate ÷ that of the scenario
  double wall_clock_s = 0;
  double compute_utilization = 0;
};

/// By the closed form, at rate factors 2^(i/2) from 1/16 to 16, ascending; one of them is 1.
std::vector<BandwidthPoint> bandwidth_curve(const Scenario& scenario);

}  // namespace fomoe::costmodel
