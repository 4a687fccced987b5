// Reads platforms in SimGrid's XML format: hosts become sites, and routes become paths.
//
// A route is a list of links. The rules of the conversion are:
//   latency of a path     sum of the one-way latencies of its links
//   bandwidth of a path   rate of the slowest link that only this route uses
//   uplink of a site      rate of the slowest link that all routes out of the site use, and no other routes
//   downlink of a site    rate of the slowest link that all routes into the site use, and no other routes
//   shared link           any other link: flows of all routes that use it share its rate. The two directions
//                         of a half-duplex link thus compete. A link of the policy FATPIPE limits each flow
//                         by itself.
// A site without an uplink of its own gets the sum of the rates of its routes, which never limits. Links with
// profiles (changes over time) and wireless links are refused.
#pragma once
#include <string>
#include <vector>

#include "platforms/choose_sites.hpp"
#include "platforms/platform.hpp"

namespace fomoe::sim {

/// Reads the XML file at `path` with SimGrid, in a child process. Throws InputError, which names the file, if
/// SimGrid cannot read it or the platform cannot be converted. Only hosts that are used need routes, and
/// become sites; if none is used (UsedSites::first is 0), the platform has the names of all hosts, and no
/// paths.
platforms::Platform read_xml_platform(const std::string& path, const platforms::UsedSites& used = {});

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
