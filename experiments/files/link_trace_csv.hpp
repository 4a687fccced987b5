// Reads a CSV of link rates and latencies that change over time.
#pragma once
#include <string>

#include "platforms/platform.hpp"

namespace fomoe::scenario {

/// Adds the changes in the CSV to the platform, sorted by time. Columns: time, link, bandwidth, latency. A
/// link has the name that reports use ("uplink of paris", "path paris to tokyo"). An empty cell keeps the
/// previous value. Throws FileError.
void read_link_trace_csv(const std::string& path, platforms::Platform& platform);

}  // namespace fomoe::scenario
