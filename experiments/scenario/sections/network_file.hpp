// Reads a file that contains only [network_model] and [calibration], as `fomoe calibrate` writes it.
#pragma once
#include <string>
#include <vector>

namespace fomoe::scenario {

struct NetworkFile {
  std::vector<std::string> overrides;  // "network_model.call_overhead=\"0.3ms\""
  std::vector<std::string> runs;       // ids of the runs that were used for the fit, from [calibration]
};

/// Throws FileError.
NetworkFile read_network_file(const std::string& path);

}  // namespace fomoe::scenario
