// Access to the SimGrid engine, of which a process can have only one. It is configured as a fluid network,
// since SimGrid's defaults model TCP on clusters.
#pragma once
namespace simgrid::s4u {
class Engine;
}

namespace fomoe::sim {

/// Creates the engine at the first call and never destroys it. Processes that are forked later inherit it.
simgrid::s4u::Engine& simgrid_engine();

}  // namespace fomoe::sim
