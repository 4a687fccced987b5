#include "sim/xml/xml_platform.hpp"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <limits>
#include <map>
#include <sstream>
#include <string_view>
#include <utility>

#include "platforms/support/child.hpp"
#include "platforms/support/input_error.hpp"
#include "platforms/support/parse_number.hpp"
#include "platforms/support/whole_file.hpp"
#include "sim/fluid/simgrid_engine.hpp"
#include "sim/fluid/simgrid_version.hpp"

namespace fomoe::sim {

namespace s4u = simgrid::s4u;

namespace {

constexpr int kMostHosts = 1024;
constexpr const char* kExample = "the files in tests/sim/platforms";

/// The names of hosts without routes: their negative number, and the names.
std::string names_of(const std::vector<s4u::Host*>& hosts) {
  std::ostringstream text;
  text << '-' << hosts.size() << '\n';
  for (const s4u::Host* host : hosts) text << host->get_name() << '\n';
  return text.str();
}

// Serialises the platform for the parent process as text, with hexadecimal numbers, which keep every digit.
// The lines are: the number of hosts, the host names, the number of links, the links (rate, shared, name),
// the routes (latency, length, link indices).
std::string loaded(const std::string& path, const platforms::UsedSites& used) {
  const s4u::Engine& engine = simgrid_engine();
  engine.load_platform(path);
  // Before this call SimGrid 4.0 has no routes between zones, and every version crashes where a zone has no
  // route.
  engine.seal_platform();
  std::vector<s4u::Host*> hosts;
  const std::vector<s4u::Host*> all = engine.get_all_hosts();
  const bool only_names = used.names.empty() && used.first.value_or(1) == 0;
  for (std::size_t i = 0; i < all.size(); ++i)
    if (only_names || used.has(all[i]->get_name(), static_cast<int>(i))) hosts.push_back(all[i]);
  for (const std::string& name : used.names) {
    const platforms::UsedSites one{{name}, {}};
    if (std::none_of(hosts.begin(), hosts.end(),
                     [&](const auto* host) { return one.has(host->get_name(), 0); })) {
      hosts = all;  // the reader of the scenario refuses the name, and lists these
      return names_of(hosts);
    }
  }
  if (only_names) return names_of(hosts);
  std::ostringstream text;
  text << std::hexfloat << hosts.size() << '\n';
  for (const s4u::Host* host : hosts) text << host->get_name() << '\n';
  if (hosts.size() > kMostHosts) return text.str();
  std::map<const s4u::Link*, std::size_t> numbers;
  std::vector<const s4u::Link*> links;
  std::ostringstream routes;
  routes << std::hexfloat;
  for (const s4u::Host* from : hosts) {
    for (const s4u::Host* to : hosts) {
      if (from == to) continue;
      std::vector<s4u::Link*> route;
      double latency_s = 0;
      from->route_to(to, route, &latency_s);
      routes << latency_s << ' ' << route.size();
      for (const s4u::Link* link : route) {
        const auto [known, inserted] = numbers.emplace(link, links.size());
        if (inserted) links.push_back(link);
        routes << ' ' << known->second;
      }
      routes << '\n';
    }
  }
  text << links.size() << '\n';
  for (const s4u::Link* link : links) {
    if (link->get_sharing_policy() == s4u::Link::SharingPolicy::WIFI)
      throw std::runtime_error("link " + link->get_name() + " is a wireless network");
    text << link->get_bandwidth() << ' '
         << (link->get_sharing_policy() == s4u::Link::SharingPolicy::FATPIPE ? 0 : 1) << ' '
         << link->get_name() << '\n';
  }
  return text.str() + routes.str();
}

double number(std::istream& text) {
  std::string word;
  text >> word;
  // As std::hexfloat writes it; streams do not read it, and std::strtod expects the locale's decimal sign.
  const std::size_t prefix = word.find("0x");
  double value = 0;
  if (prefix == std::string::npos) return parse_number<double>(word).value_or(0);  // inf
  std::from_chars(word.data() + prefix + 2, word.data() + word.size(), value, std::chars_format::hex);
  return word.front() == '-' ? -value : value;
}

// Selects the one line of SimGrid's error output that states the error.
std::string in_one_line(const std::string& message) {
  std::istringstream lines(message);
  std::string chosen;
  for (std::string line; std::getline(lines, line);) {
    if (line.empty()) continue;
    if (chosen.empty()) chosen = line;
    if (line.find("arse error") != std::string::npos || line.find(".xml") != std::string::npos) {
      chosen = line;
      break;
    }
  }
  if (chosen.size() > 300) chosen = chosen.substr(0, 300) + "…";
  return chosen.empty() || chosen.starts_with("Segmentation fault")
             ? "SimGrid stopped without a message; a route may be missing"
             : chosen;
}

std::string contents(const std::string& path) { return whole_file(path).value_or(""); }

// Replaces comments by spaces, but keeps their line ends.
std::string without_comments(std::string text) {
  std::size_t begin = 0;
  while ((begin = text.find("<!--", begin)) != std::string::npos) {
    const std::size_t end = std::min(text.find("-->", begin), text.size() - 3) + 3;
    for (; begin < end; ++begin)
      if (text[begin] != '\n') text[begin] = ' ';
  }
  return text;
}

// The first attribute or element that names a profile, and its position; empty if there is none. (std::regex
// would overflow the stack on long texts.)
std::pair<std::string, std::size_t> first_profile(const std::string& text) {
  constexpr std::string_view kSpace = " \t\r\n";
  std::pair<std::string, std::size_t> first{"", std::string::npos};
  const auto consider = [&](const std::string& name, const auto& matches) {
    for (std::size_t at = text.find(name); at != std::string::npos && at < first.second;
         at = text.find(name, at + 1)) {
      if (matches(at, at + name.size())) first = {name, at};
    }
  };
  for (const char* attribute : {"bandwidth_file", "latency_file", "state_file"}) {
    consider(attribute, [&](std::size_t begin, std::size_t end) {
      const auto is_word = [&](char c) {
        return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
      };
      const std::size_t next = text.find_first_not_of(kSpace, end);
      return (begin == 0 || !is_word(text[begin - 1])) && next != std::string::npos && text[next] == '=';
    });
  }
  for (const char* element : {"trace", "trace_connect"}) {
    consider(element, [&](std::size_t begin, std::size_t end) {
      return begin > 0 && text[begin - 1] == '<' && end < text.size() &&
             (kSpace.find(text[end]) != std::string_view::npos || text[end] == '/' || text[end] == '>');
    });
  }
  return first;
}

// SimGrid does not tell which profiles (changes over time) a link has, so they are looked for in the file.
// Profiles of the speed of hosts do not matter, since that speed is not used.
void refuse_profiles(const std::string& path) {
  const std::string text = without_comments(contents(path));
  const auto [name, position] = first_profile(text);
  if (name.empty()) return;
  const auto line = 1 + std::count(text.begin(), text.begin() + static_cast<long>(position), '\n');
  throw InputError(path + ":" + std::to_string(line), name + ", a profile of changes over time",
                   "links that do not change, and the changes as a CSV file in platform.trace",
                   "trace = \"../data/link-trace-example.csv\"");
}

/// The value of an attribute of an element; empty if it has none.
std::string attribute(const std::string& element, const std::string& name) {
  const std::size_t at = element.find(' ' + name + '=');
  if (at == std::string::npos) return {};
  const std::size_t begin = at + name.size() + 2, end = element.find(element[begin], begin + 1);
  return end == std::string::npos ? "" : element.substr(begin + 1, end - begin - 1);
}

/// The settings of SimGrid's own network model in the file's <config>, as "network/TCP-gamma = 4194304, …";
/// empty if there are none.
std::string network_settings(const std::string& path) {
  const std::string text = without_comments(contents(path));
  std::string settings;
  for (std::size_t at = text.find("<prop "); at != std::string::npos; at = text.find("<prop ", at + 1)) {
    const std::string element = text.substr(at, text.find('>', at) - at);
    const std::string id = attribute(element, "id");
    if (id.starts_with("network/"))
      settings += (settings.empty() ? "" : ", ") + id + " = " + attribute(element, "value");
  }
  return settings;
}

using Pair = std::pair<int, int>;  // (from, to)

/// Where a link is in the platform, by the pairs of hosts whose routes use it.
struct Place {
  int uplink_of = -1, downlink_of = -1;
  bool one_path = false;
};

Place place_of(const std::vector<Pair>& users, int hosts) {
  Place place;
  const auto all = [&](auto&& predicate) { return std::all_of(users.begin(), users.end(), predicate); };
  const auto others = static_cast<std::size_t>(hosts - 1);
  const auto [from, to] = users.front();
  if (users.size() == 1) {
    place.one_path = true;
  } else if (users.size() == others && all([from = from](Pair p) { return p.first == from; })) {
    place.uplink_of = from;
  } else if (users.size() == others && all([to = to](Pair p) { return p.second == to; })) {
    place.downlink_of = to;
  }
  return place;
}

}  // namespace

platforms::Platform platform_of_routes(const std::string& name, const std::vector<std::string>& hosts,
                                       const std::vector<XmlLink>& links,
                                       const std::vector<XmlRoute>& routes) {
  platforms::Platform platform;
  platform.name = name;
  const int n = static_cast<int>(hosts.size());
  for (const std::string& host : hosts)
    platform.sites.push_back({host, platforms::kUnlimited, platforms::kUnlimited});
  platform.paths = platforms::Paths(n, {});
  std::vector<std::vector<Pair>> users(links.size());
  std::vector<bool> twice(links.size(), false);  // whether some route crosses the link more than once
  for (int from = 0; from < n; ++from) {
    for (int to = 0; to < n; ++to) {
      if (from == to) continue;
      const XmlRoute& route = routes[static_cast<std::size_t>(from * n + to)];
      platform.paths.set(from, to, {route.latency_s});
      for (const int link : route.links) {
        auto& pairs = users[static_cast<std::size_t>(link)];
        if (pairs.empty() || pairs.back() != Pair(from, to))
          pairs.emplace_back(from, to);
        else
          twice[static_cast<std::size_t>(link)] = true;
      }
    }
  }

  std::vector<int> shared(links.size(), -1);  // index among the platform's shared links
  for (std::size_t link = 0; link < links.size(); ++link) {
    if (users[link].empty()) continue;
    const Place place = links[link].shared && !twice[link] ? place_of(users[link], n) : Place{};
    const auto limit = [&](double& rate) { rate = std::min(rate, links[link].bytes_per_s); };
    if (place.one_path) {
      platform.change_path(users[link].front().first, users[link].front().second,
                           [&](platforms::Path& path) { limit(path.bandwidth_bytes_per_s); });
    } else if (place.uplink_of >= 0) {
      limit(platform.sites[static_cast<std::size_t>(place.uplink_of)].uplink_bytes_per_s);
    } else if (place.downlink_of >= 0) {
      limit(platform.sites[static_cast<std::size_t>(place.downlink_of)].downlink_bytes_per_s);
    } else {
      shared[link] = static_cast<int>(platform.shared_links.size());
      platform.shared_links.push_back({links[link].name, links[link].bytes_per_s, !links[link].shared});
    }
  }
  for (int from = 0; from < n; ++from) {
    for (int to = 0; to < n; ++to) {
      if (from == to) continue;
      std::vector<int> on_route;
      for (const int link : routes[static_cast<std::size_t>(from * n + to)].links) {
        const int index = shared[static_cast<std::size_t>(link)];
        if (index >= 0) on_route.push_back(index);  // a link that the route has twice is crossed twice
      }
      platform.share(from, to, std::move(on_route));
    }
  }
  // A site without an uplink or downlink of its own gets the least rate that all of its routes have in
  // common, or the sum of the rates of its routes, which never limits.
  const auto rate_of = [&](int from, int to) {
    double rate = platforms::kUnlimited;
    for (const int link : routes[static_cast<std::size_t>(from * n + to)].links)
      rate = std::min(rate, links[static_cast<std::size_t>(link)].bytes_per_s);
    return rate;
  };
  std::vector<double> most_out(hosts.size(), platforms::kUnlimited), most_in = most_out;
  for (std::size_t link = 0; link < links.size(); ++link) {
    if (!links[link].shared) continue;
    std::vector<int> out(hosts.size(), 0), in = out;  // how many routes of a site use the link
    for (const auto& [from, to] : users[link]) {
      ++out[static_cast<std::size_t>(from)];
      ++in[static_cast<std::size_t>(to)];
    }
    for (std::size_t site = 0; site < hosts.size(); ++site) {
      if (out[site] == n - 1) most_out[site] = std::min(most_out[site], links[link].bytes_per_s);
      if (in[site] == n - 1) most_in[site] = std::min(most_in[site], links[link].bytes_per_s);
    }
  }
  for (int site = 0; site < n; ++site) {
    double out = 0, in = 0;
    for (int other = 0; other < n; ++other) {
      if (other == site) continue;
      out += rate_of(site, other);
      in += rate_of(other, site);
    }
    out = std::min(out, most_out[static_cast<std::size_t>(site)]);
    in = std::min(in, most_in[static_cast<std::size_t>(site)]);
    platforms::Site& own = platform.sites[static_cast<std::size_t>(site)];
    if (own.uplink_bytes_per_s == platforms::kUnlimited) own.uplink_bytes_per_s = out;
    if (own.downlink_bytes_per_s == platforms::kUnlimited) own.downlink_bytes_per_s = in;
  }

  platform.provenance.push_back({"platform", Origin::assumed,
                                 name + ", read by SimGrid: routes of " + std::to_string(n) +
                                     " hosts; the speeds of the hosts are not used"});
  return platform;
}

platforms::Platform read_xml_platform(const std::string& path, const platforms::UsedSites& used) {
  const auto refuse = [&](const std::string& got, const std::string& expected) -> void {
    throw InputError(path, got, expected, kExample);
  };
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(path, ignored))
    refuse("no file that can be read", "a SimGrid platform in XML");
  refuse_profiles(path);
  std::string answer;
  try {
    Child child([&](ChildOutput& output) { output.put(loaded(path, used)); });
    child.get(answer);
    child.finish();
  } catch (const ChildError& error) {
    refuse("a file that SimGrid cannot read (" + in_one_line(error.what()) + ")",
           "a SimGrid platform in XML, version 4.1, with a route between any two hosts");
  }
  std::istringstream text(answer);
  std::size_t count = 0;
  if (text.peek() == '-') {  // only names
    text.ignore();
    text >> count;
    platforms::Platform names;
    names.name = std::filesystem::path(path).filename().string();
    names.sites.resize(count);
    for (platforms::Site& site : names.sites) std::getline(text >> std::ws, site.name);
    names.paths = platforms::Paths(static_cast<int>(count), {});
    return names;
  }
  text >> count;
  if (count < 2 || count > kMostHosts)
    refuse(std::to_string(count) + (count == 1 ? " host" : " hosts"),
           "from 2 to " + std::to_string(kMostHosts) + " hosts, of which platform.use_sites may select some");
  std::vector<std::string> hosts(count);
  for (std::string& host : hosts) std::getline(text >> std::ws, host);
  std::size_t link_count = 0;
  text >> link_count;
  std::vector<XmlLink> links(link_count);
  for (XmlLink& link : links) {
    link.bytes_per_s = number(text);
    text >> link.shared;
    std::getline(text >> std::ws, link.name);
  }
  std::vector<XmlRoute> routes(count * count);
  for (std::size_t from = 0; from < count; ++from) {
    for (std::size_t to = 0; to < count; ++to) {
      if (from == to) continue;
      XmlRoute& route = routes[from * count + to];
      route.latency_s = number(text);
      std::size_t length = 0;
      text >> length;
      route.links.resize(length);
      for (int& link : route.links) text >> link;
    }
  }
  for (const XmlLink& link : links) {
    if (!(link.bytes_per_s > 0) || link.bytes_per_s > std::numeric_limits<double>::max())
      refuse("link " + link.name + " with a bandwidth of " + std::to_string(link.bytes_per_s) + " B/s",
             "bandwidths above zero");
  }
  for (std::size_t pair = 0; pair < routes.size(); ++pair) {
    if (pair / count != pair % count && routes[pair].links.empty())
      refuse("no link from " + hosts[pair / count] + " to " + hosts[pair % count],
             "a route with links between any two hosts");
    if (!(routes[pair].latency_s >= 0))
      refuse("a negative latency from " + hosts[pair / count] + " to " + hosts[pair % count],
             "latencies of zero or more");
  }
  platforms::Platform platform =
      platform_of_routes(std::filesystem::path(path).filename().string(), hosts, links, routes);
  if (const std::string settings = network_settings(path); !settings.empty())
    platform.provenance.push_back({"platform", Origin::assumed,
                                   "the settings of SimGrid in the file are not used (" + settings +
                                       "); [network_model] has what headers, windows and losses take"});
  return platform;
}

}  // namespace fomoe::sim
