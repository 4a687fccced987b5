// Wall clock as a function of the bandwidth between the sites, with all links scaled together.
#pragma once
#include <functional>
#include <vector>

#include "costmodel/inputs/scenario.hpp"
#include "costmodel/report/run_report.hpp"

namespace fomoe::costmodel {

struct BandwidthPoint {
  double rate_factor = 1;  // rate of every link ÷ its rate in the scenario
  double wall_clock_s = 0;
  double compute_utilization = 0;
};

/// Reports at rate factors 2^(i/2) from 1/16 to 16, in ascending order; one of them is 1. `report_of`
/// computes the report of a scenario.
std::vector<BandwidthPoint> bandwidth_curve(const Scenario& scenario,
                                            const std::function<RunReport(const Scenario&)>& report_of);

}  // namespace fomoe::costmodel
