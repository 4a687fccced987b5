// The calls that differ between the versions of SimGrid that fomoe builds with: 3.32 (Debian 12), 3.35
// (Ubuntu 24.04) and 4.0 (Debian 13). No other file asks for the version.
#pragma once
// clang-format off
#include <simgrid/s4u.hpp>
#include <simgrid/version.h>  // uses macros that s4u.hpp defines
// clang-format on
#include <string>
#include <vector>

namespace fomoe::sim {

/// The setting for the precision of times, in seconds.
#if SIMGRID_VERSION >= 33500
inline constexpr const char* kTimePrecisionSetting = "precision/timing";
#else
inline constexpr const char* kTimePrecisionSetting = "surf/precision";
#endif

/// A zone in which every pair of hosts has a route of its own.
inline simgrid::s4u::NetZone* make_zone(simgrid::s4u::Engine& engine, const std::string& name) {
#if SIMGRID_VERSION >= 40000
  return engine.get_netzone_root()->add_netzone_full(name);
#else
  (void)engine;  // the first zone becomes the root of the only engine
  return simgrid::s4u::create_full_zone(name);
#endif
}

/// The caller sets the host's other properties and seals it.
inline simgrid::s4u::Host* make_host(simgrid::s4u::NetZone& zone, const std::string& name,
                                     double flop_per_s) {
#if SIMGRID_VERSION >= 40000
  return zone.add_host(name, flop_per_s);
#else
  return zone.create_host(name, flop_per_s);
#endif
}

/// The caller sets the link's other properties and seals it.
inline simgrid::s4u::Link* make_link(simgrid::s4u::NetZone& zone, const std::string& name,
                                     double bytes_per_s) {
#if SIMGRID_VERSION >= 40000
  return zone.add_link(name, bytes_per_s);
#else
  return zone.create_link(name, bytes_per_s);
#endif
}

/// The route in one direction between two hosts of the zone.
inline void add_route(simgrid::s4u::NetZone& zone, const simgrid::s4u::Host* from,
                      const simgrid::s4u::Host* to, const std::vector<simgrid::s4u::LinkInRoute>& links) {
#if SIMGRID_VERSION >= 33500
  zone.add_route(from, to, links, false);
#else
  zone.add_route(from->get_netpoint(), to->get_netpoint(), nullptr, nullptr, links, false);
#endif
}

}  // namespace fomoe::sim
