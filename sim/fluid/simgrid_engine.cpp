#include "sim/fluid/simgrid_engine.hpp"

#include <string>

#include "sim/fluid/simgrid_version.hpp"

namespace fomoe::sim {

namespace s4u = simgrid::s4u;

namespace {

// SimGrid's defaults are a TCP model that was fitted to clusters. These settings select a fluid model: every
// flow gets its max-min fair share of each link that it crosses, at once, whatever its latency. SimGrid would
// weight the shares by 1/latency. Its links therefore have latency 0, and latency is applied as a delay
// before the flow starts. SimGrid's own window cap is switched off.
int configured(char** argv_storage) {
  static const std::string precision = std::string("--cfg=") + kTimePrecisionSetting + ":1e-12";
  static const char* const settings[] = {
      "fomoe",
      "--cfg=network/model:CM02",
      "--cfg=network/crosstraffic:0",
      "--cfg=network/TCP-gamma:1e15",
      "--cfg=network/weight-S:0",
      "--cfg=network/latency-factor:1",
      "--cfg=network/bandwidth-factor:1",
      precision.c_str(),
      "--log=root.thresh:error",
  };
  int count = 0;
  for (const char* setting : settings) argv_storage[count++] = const_cast<char*>(setting);
  return count;
}

struct Arguments {
  char* argv[16] = {};
  int argc = 0;
  char** values = argv;
  Arguments() { argc = configured(argv); }
};

}  // namespace

s4u::Engine& simgrid_engine() {
  static Arguments arguments;
  static auto* engine = new s4u::Engine(&arguments.argc, arguments.values);
  return *engine;
}

}  // namespace fomoe::sim
