#include "experiments/files/link_trace_csv.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <vector>

#include "experiments/files/csv.hpp"
#include "experiments/scenario/toml/document.hpp"
#include "experiments/text/suggest.hpp"
#include "experiments/text/units.hpp"

namespace fomoe::scenario {
namespace {

using platforms::LinkChange;

constexpr const char* kHeader = "time,link,bandwidth,latency";
constexpr const char* kExampleRow = "3600s,uplink of site-0,200Mbps,";

std::map<std::string, LinkChange> links_by_name(const platforms::Platform& platform) {
  std::map<std::string, LinkChange> links;
  const auto add = [&](LinkChange::Link link, int from, int to) {
    LinkChange change;
    change.link = link;
    change.from = from;
    change.to = to;
    links[platforms::link_name(platform, link, from, to)] = change;
  };
  for (int a = 0; a < platform.size(); ++a) {
    add(LinkChange::Link::uplink, a, a);
    add(LinkChange::Link::downlink, a, a);
    for (int b = 0; b < platform.size(); ++b) {
      if (a != b) add(LinkChange::Link::path, a, b);
    }
  }
  for (int i = 0; i < static_cast<int>(platform.backbones.size()); ++i) add(LinkChange::Link::backbone, i, i);
  return links;
}

double quantity(const std::string& cell, Quantity kind, const std::string& place, const char* column,
                const char* example) {
  try {
    return parse_quantity(cell, kind);
  } catch (const QuantityError& error) {
    fail(place, column, error.what(), fmt::format("{} with a unit ({})", to_string(kind), known_units(kind)),
         example, error.suggestion());
  }
}

}  // namespace

void read_link_trace_csv(const std::string& path, platforms::Platform& platform) {
  CsvFile file(path, {"trace", "a CSV of rates over time", kHeader, kExampleRow});
  const auto links = links_by_name(platform);
  while (file.next()) {
    const std::string place = file.place();
    const auto found = links.find(file.cell(1));
    if (found == links.end()) {
      std::vector<std::string> names;
      for (const auto& [name, change] : links) names.push_back(name);
      fail(place, "link", '"' + file.cell(1) + '"', "the name that reports give to a link of the platform",
           "uplink of site-0", nearest(file.cell(1), names));
    }
    LinkChange change = found->second;
    change.at_s = quantity(file.cell(0), Quantity::duration, place, "time", "3600s");
    if (!file.cell(2).empty())
      change.bandwidth_bytes_per_s = quantity(file.cell(2), Quantity::rate, place, "bandwidth", "200Mbps");
    if (!file.cell(3).empty()) {
      if (change.link != LinkChange::Link::path)
        fail(place, "latency", '"' + file.cell(3) + '"', "an empty cell: only paths have a latency",
             kExampleRow);
      change.latency_s = quantity(file.cell(3), Quantity::duration, place, "latency", "30ms");
    }
    if (file.cell(2).empty() && file.cell(3).empty())
      fail(place, "row", "neither bandwidth nor latency", "at least one of them", kExampleRow);
    if (!platform.changes.empty() && change.at_s < platform.changes.back().at_s)
      fail(place, "time", '"' + file.cell(0) + '"', "rows in ascending order of time", kExampleRow);
    platform.changes.push_back(change);
  }
  if (platform.changes.empty()) fail(path + ":2", "trace", "no rows", "at least one change", kExampleRow);
  platform.provenance.push_back({"rates over time", Origin::assumed, path});
}

}  // namespace fomoe::scenario
