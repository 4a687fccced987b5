// A file with a [network_model] alone, as `fomoe calibrate` writes it, with the runs that it was fitted to.
#pragma once
#include <string>
#include <vector>

namespace fomoe::scenario {

struct NetworkFile {
  std::vector<std::string> overrides;  // "network_model.call_overhead=\"0.3ms\""
  std::vector<std::string> runs;       // ids, of [calibration]
};

/// Throws FileError.
NetworkFile read_network_file(const std::string& path);

}  // namespace fomoe::scenario
