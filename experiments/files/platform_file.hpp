// Reads platform files: named sites and the measured or given paths between them.
#pragma once
#include <map>
#include <string>
#include <utility>

#include "platforms/choose_sites.hpp"
#include "platforms/platform.hpp"

namespace fomoe::scenario {

/// Each ordered pair of sites takes its path from the first of these sources that describes the pair:
/// [[path]], the CSV of measured paths, [default_path]. A [[path]] without bandwidth keeps the measured
/// bandwidth. Sites that are not used need no paths. Throws FileError.
platforms::Platform read_platform_file(const std::string& path, const platforms::UsedSites& used = {});

/// Throws FileError if the file is a graph (GML, GraphML), a table or the output of a measurement: it names
/// what the file is, and what is read as a platform. Other files, also unreadable ones, are left to the
/// reader.
void refuse_other_kinds(const std::string& path);

struct MeasuredPath {
  double bandwidth_bytes_per_s = 0;
  double latency_s = 0;  // one way, seconds: half of the measured round trip
};
using MeasuredPaths = std::map<std::pair<std::string, std::string>, MeasuredPath>;  // key: (from, to)

/// Columns src_region, dst_region, throughput_median_bits_per_s, throughput_samples, rtt_median_ms.
MeasuredPaths read_paths_csv(const std::string& path);

}  // namespace fomoe::scenario
