// Measured all-reduces, one a line: a scenario that sends just that, and the time that it took.
#pragma once
#include <string>
#include <vector>

#include "experiments/scenario/scenario_source.hpp"

namespace fomoe::scenario {

struct MeasuredCollective {
  std::string place;      // "file:line"
  ScenarioSource source;  // one step, then one all-reduce of the payload, between equal sites
  double seconds = 0;
};

/// Columns collective,sites,payload,bandwidth,latency,seconds: ring, direct or recursive; how many equal
/// sites; quantities with units, the payload of one site, the rate of each site's link, one way between two
/// sites; seconds from the first byte to the last. Throws FileError.
std::vector<MeasuredCollective> read_collectives_csv(const std::string& path);

}  // namespace fomoe::scenario
