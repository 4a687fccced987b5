// The platform in SimGrid, and everything that differs between SimGrid's versions or misleads in its
// defaults.
#pragma once
#include <simgrid/s4u.hpp>
#include <vector>

#include "costmodel/plan.hpp"
#include "platforms/platform.hpp"

namespace fomoe::sim {

/// One engine with one host per node of the plan. One per process: SimGrid's clock is global.
class Engine {
 public:
  Engine(const std::vector<costmodel::Node>& nodes, const platforms::Platform& platform);

  [[nodiscard]] simgrid::s4u::Host* host(costmodel::NodeId node) const {
    return hosts_[static_cast<std::size_t>(node)];
  }
  /// Seconds before the first byte of a flow moves.
  [[nodiscard]] double latency_s(costmodel::NodeId from, costmodel::NodeId to) const;
  void run() { engine_.run(); }

 private:
  simgrid::s4u::Engine engine_;
  const std::vector<costmodel::Node>& nodes_;
  const platforms::Platform& platform_;
  std::vector<simgrid::s4u::Host*> hosts_;
};

}  // namespace fomoe::sim
