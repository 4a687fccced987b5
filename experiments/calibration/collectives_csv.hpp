// Reads a CSV of measured all-reduces. Each row gives the measured time of one all-reduce, and a scenario
// whose only communication is this all-reduce.
#pragma once
#include <string>
#include <vector>

#include "experiments/scenario/scenario_source.hpp"

namespace fomoe::scenario {

struct MeasuredCollective {
  std::string place;      // "file:line"
  ScenarioSource source;  // one step, then one all-reduce of the payload, between identical sites
  double seconds = 0;
};

/// Columns collective,sites,payload,bandwidth,latency,seconds. collective: ring, direct or recursive. sites:
/// the number of identical sites. payload: size per site, with unit. bandwidth: rate of each site's link,
/// with unit. latency: one way between two sites, with unit. seconds: time from the first byte to the last.
/// Throws FileError if the file is wrong.
std::vector<MeasuredCollective> read_collectives_csv(const std::string& path);

}  // namespace fomoe::scenario
