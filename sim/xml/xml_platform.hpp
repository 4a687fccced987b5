// Reads platforms in SimGrid's XML format: hosts become sites, and routes become paths.
//
// A route is a list of links. The rules of the conversion are:
//   latency of a path     sum of the one-way latencies of its links
//   bandwidth of a path   rate of its slowest link
//   uplink of a site      rate of the slowest link that all routes out of the site use, and no other routes
//   downlink of a site    rate of the slowest link that all routes into the site use, and no other routes
// A site without such a link gets the sum of the rates of its paths, which never limits. A link that does not
// share (FATPIPE) limits paths only. A link that several paths share in another way becomes their backbone.
// If a path has several such links, the slowest becomes its backbone, and the others limit each path
// separately. The two directions of a half-duplex link do not compete in the model. The platform's provenance
// names everything that is not modelled.
#pragma once
#include <string>
#include <vector>

#include "platforms/platform.hpp"

namespace fomoe::sim {

/// Reads the XML file at `path` with SimGrid, in a child process. Throws InputError, which names the file, if
/// SimGrid cannot read it or the platform cannot be converted.
platforms::Platform read_xml_platform(const std::string& path);

struct XmlLink {
  std::string name;
  double bytes_per_s = 0;
  bool shared = true;  // true: the flows on the link share its rate; false: each flow gets the full rate
};
struct XmlRoute {
  std::vector<int> links;  // indices of the links
  double latency_s = 0;
};

/// Converts hosts, links and routes to a platform, by the rules at the top of this file. `routes` has
/// hosts.size()² entries, row = from; the diagonal is unused.
platforms::Platform platform_of_routes(const std::string& name, const std::vector<std::string>& hosts,
                                       const std::vector<XmlLink>& links,
                                       const std::vector<XmlRoute>& routes);

}  // namespace fomoe::sim
