// Platforms that SimGrid's own XML describes: hosts become sites, routes become paths.
//
// A route is a list of links. What our platforms have of it:
//   latency of a path     Σ of its links' latencies, one way
//   bandwidth of a path   the slowest of its links
//   uplink of a site      the slowest of the links that all routes out of it use, and no others
//   downlink              the same of the routes into it
// Where a site has no such link its own is the sum of its paths, which never limits. A link that does not
// share (FATPIPE) limits paths only. A link that several paths share in another way is their backbone; where
// a path has several of these, the slowest is, and the others limit each path by itself. The two directions
// of a half-duplex link do not compete. The platform's provenance names what is not modelled.
#pragma once
#include <string>
#include <vector>

#include "platforms/platform.hpp"

namespace fomoe::sim {

/// Read by SimGrid in a child process. Throws InputError that names the file.
platforms::Platform read_xml_platform(const std::string& path);

struct XmlLink {
  std::string name;
  double bytes_per_s = 0;
  bool shared = true;  // by the flows that use it; false: each flow gets all of it
};
struct XmlRoute {
  std::vector<int> links;
  double latency_s = 0;
};

/// The rules above. `routes` has hosts.size()² entries, row = from; the diagonal is unused.
platforms::Platform platform_of_routes(const std::string& name, const std::vector<std::string>& hosts,
                                       const std::vector<XmlLink>& links,
                                       const std::vector<XmlRoute>& routes);

}  // namespace fomoe::sim
