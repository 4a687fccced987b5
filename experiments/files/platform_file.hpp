// Platform files: named sites and the measured or given paths between them.
#pragma once
#include <map>
#include <string>
#include <utility>

#include "platforms/platform.hpp"

namespace fomoe::scenario {

/// Every ordered pair of sites is covered by a [[path]], the CSV or [default_path], in this order; a [[path]]
/// without bandwidth keeps the measured one. Throws FileError.
platforms::Platform read_platform_file(const std::string& path);

struct MeasuredPath {
  double bandwidth_bytes_per_s = 0;
  double latency_s = 0;  // one way: half of the measured round trip
};
using MeasuredPaths = std::map<std::pair<std::string, std::string>, MeasuredPath>;  // (from, to)

/// Columns src_region, dst_region, throughput_median_bits_per_s, throughput_samples, rtt_median_ms.
MeasuredPaths read_paths_csv(const std::string& path);

}  // namespace fomoe::scenario
