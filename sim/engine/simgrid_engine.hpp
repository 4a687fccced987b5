// SimGrid's engine, of which a process has one, with every setting that its defaults would mislead by.
#pragma once
namespace simgrid::s4u {
class Engine;
}

namespace fomoe::sim {

/// Made at the first call, and never destroyed; processes that are forked after that have it ready.
simgrid::s4u::Engine& simgrid_engine();

}  // namespace fomoe::sim
