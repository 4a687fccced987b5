// How rates and latencies of a platform's links change over time.
#pragma once
#include <string>

#include "platforms/platform.hpp"

namespace fomoe::scenario {

/// Adds the changes of a CSV to the platform, in the order of their times. Columns time, link, bandwidth,
/// latency: a link is called as reports call it ("uplink of paris", "path paris to tokyo"); an empty cell
/// leaves what was. Throws FileError.
void read_link_trace_csv(const std::string& path, platforms::Platform& platform);

}  // namespace fomoe::scenario
