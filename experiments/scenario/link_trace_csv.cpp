#include "experiments/scenario/link_trace_csv.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <vector>

#include "experiments/scenario/document.hpp"
#include "experiments/scenario/suggest.hpp"
#include "experiments/scenario/units.hpp"

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

std::vector<std::string> split(const std::string& line) {
  std::vector<std::string> cells(1);
  for (const char c : line) {
    if (c == ',') {
      cells.emplace_back();
    } else if (c != '\r') {
      cells.back() += c;
    }
  }
  return cells;
}

}  // namespace

void read_link_trace_csv(const std::string& path, platforms::Platform& platform) {
  std::ifstream file(path);
  std::string line;
  if (!file || !std::getline(file, line))
    fail(path + ":1", "trace", "no file that can be read", "a CSV of rates over time", kHeader);
  if (split(line) != split(kHeader))
    fail(path + ":1", "header", '"' + line + '"', fmt::format("\"{}\"", kHeader), kExampleRow);
  const auto links = links_by_name(platform);
  for (int number = 2; std::getline(file, line); ++number) {
    const std::string place = fmt::format("{}:{}", path, number);
    const std::vector<std::string> cells = split(line);
    if (cells.size() != 4) fail(place, "row", fmt::format("{} cells", cells.size()), "4 cells", kExampleRow);
    const auto found = links.find(cells[1]);
    if (found == links.end()) {
      std::vector<std::string> names;
      for (const auto& [name, change] : links) names.push_back(name);
      fail(place, "link", '"' + cells[1] + '"', "a link of the platform, as reports call it", "uplink of site-0",
           nearest(cells[1], names));
    }
    LinkChange change = found->second;
    change.at_s = quantity(cells[0], Quantity::duration, place, "time", "3600s");
    if (!cells[2].empty())
      change.bandwidth_bytes_per_s = quantity(cells[2], Quantity::rate, place, "bandwidth", "200Mbps");
    if (!cells[3].empty()) {
      if (change.link != LinkChange::Link::path)
        fail(place, "latency", '"' + cells[3] + '"', "an empty cell: only paths have a latency", kExampleRow);
      change.latency_s = quantity(cells[3], Quantity::duration, place, "latency", "30ms");
    }
    if (cells[2].empty() && cells[3].empty())
      fail(place, "row", "neither bandwidth nor latency", "at least one of them", kExampleRow);
    if (!platform.changes.empty() && change.at_s < platform.changes.back().at_s)
      fail(place, "time", '"' + cells[0] + '"', "rows in the order of their times", kExampleRow);
    platform.changes.push_back(change);
  }
  if (platform.changes.empty()) fail(path + ":2", "trace", "no rows", "at least one change", kExampleRow);
  platform.provenance.push_back({"rates over time", Origin::assumed, path});
}

}  // namespace fomoe::scenario
