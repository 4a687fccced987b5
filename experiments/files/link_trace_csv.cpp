#include "experiments/files/link_trace_csv.hpp"

#include <fmt/format.h>
#include <fnmatch.h>

#include <cmath>
#include <utility>
#include <vector>

#include "experiments/files/csv.hpp"
#include "experiments/scenario/toml/document.hpp"
#include "experiments/text/suggest.hpp"
#include "experiments/text/units.hpp"
#include "platforms/link_changes.hpp"

namespace fomoe::scenario {
namespace {

using platforms::LinkChange;

constexpr const char* kTraceHeader = "time,link,bandwidth,latency";
constexpr const char* kExampleChange = "3600s,uplink of site-0,200Mbps,";

/// All links of the platform with the names that reports give them.
std::vector<std::pair<std::string, LinkChange>> named_links(const platforms::Platform& platform) {
  std::vector<std::pair<std::string, LinkChange>> links;
  const auto add = [&](LinkChange::Link link, int from, int to) {
    LinkChange change;
    change.link = link;
    change.from = from;
    change.to = to;
    links.emplace_back(platforms::link_name(platform, link, from, to), change);
  };
  for (int a = 0; a < platform.size(); ++a) {
    add(LinkChange::Link::uplink, a, a);
    add(LinkChange::Link::downlink, a, a);
    for (int b = 0; b < platform.size(); ++b) {
      if (a != b) add(LinkChange::Link::path, a, b);
    }
  }
  for (int i = 0; i < static_cast<int>(platform.shared_links.size()); ++i) {
    if (!platform.shared_links[static_cast<std::size_t>(i)].per_flow) add(LinkChange::Link::shared, i, i);
  }
  return links;
}

/// The links with that name, or, if none has it, those that match it as a pattern.
std::vector<LinkChange> matching(const std::vector<std::pair<std::string, LinkChange>>& links,
                                 const std::string& name) {
  std::vector<LinkChange> found;
  for (const auto& [link_name, change] : links)
    if (link_name == name) found.push_back(change);
  if (!found.empty()) return found;
  for (const auto& [link_name, change] : links)
    if (fnmatch(name.c_str(), link_name.c_str(), 0) == 0) found.push_back(change);
  return found;
}

/// A quantity with a unit, or a percentage of `constant`, which is the link's value in the platform.
double quantity(const std::string& cell, double constant, Quantity kind, const std::string& place,
                const char* column, const char* example) {
  try {
    if (is_percentage(cell)) return parse_percentage(cell) * constant;
    return parse_quantity(cell, kind);
  } catch (const QuantityError& error) {
    fail(place, column, error.what(),
         fmt::format("{} with a unit ({}), or a percentage of the link's own value", to_string(kind),
                     known_units(kind)),
         example, error.suggestion());
  }
}

double time_of(const std::string& cell, const std::string& place) {
  try {
    return parse_quantity(cell, Quantity::duration);
  } catch (const QuantityError& error) {
    fail(place, "time", error.what(),
         fmt::format("{} with a unit ({})", to_string(Quantity::duration), known_units(Quantity::duration)),
         "3600s", error.suggestion());
  }
}

}  // namespace

void read_link_trace_csv(const std::string& path, platforms::Platform& platform) {
  CsvFile file(path, {"trace", "a CSV of rates over time", kTraceHeader, kExampleChange});
  const auto links = named_links(platform);
  platforms::Platform constant = platform;
  while (file.next()) {
    const std::string place = file.place();
    const std::vector<LinkChange> found = matching(links, file.cell(1));
    if (found.empty()) {
      std::vector<std::string> names;
      for (const auto& [name, change] : links) names.push_back(name);
      fail(place, "link", '"' + file.cell(1) + '"',
           "the name that reports give to a link of the platform whose rate flows share, or a pattern that "
           "matches such names",
           "uplink of site-0, or uplink of *", nearest(file.cell(1), names));
    }
    if (file.cell(2).empty() && file.cell(3).empty())
      fail(place, "row", "neither bandwidth nor latency", "at least one of them", kExampleChange);
    const double at_s = time_of(file.cell(0), place);
    if (!platform.changes.empty() && at_s < platform.changes.back().at_s)
      fail(place, "time", '"' + file.cell(0) + '"', "rows in ascending order of time", kExampleChange);
    for (LinkChange change : found) {
      change.at_s = at_s;
      if (!file.cell(2).empty()) {
        const double own = platforms::rate_of(constant, change);
        if (is_percentage(file.cell(2)) && !std::isfinite(own))
          fail(place, "bandwidth", '"' + file.cell(2) + '"',
               fmt::format("a rate for {}, because the platform does not limit that link",
                           platforms::link_name(platform, change.link, change.from, change.to)),
               "200Mbps");
        change.bandwidth_bytes_per_s =
            quantity(file.cell(2), own, Quantity::rate, place, "bandwidth", "200Mbps, or 50%");
      }
      if (!file.cell(3).empty()) {
        if (change.link != LinkChange::Link::path)
          fail(place, "latency", '"' + file.cell(3) + '"', "an empty cell: only paths have a latency",
               kExampleChange);
        change.latency_s = quantity(file.cell(3), constant.path(change.from, change.to).latency_s,
                                    Quantity::duration, place, "latency", "30ms, or 200%");
      }
      platform.changes.push_back(change);
    }
  }
  if (platform.changes.empty()) fail(path + ":2", "trace", "no rows", "at least one change", kExampleChange);
  platform.provenance.push_back({"rates over time", Origin::assumed, path});
}

}  // namespace fomoe::scenario
