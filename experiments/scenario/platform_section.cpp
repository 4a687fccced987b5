#include <fmt/format.h>

#include "experiments/scenario/platform_file.hpp"
#include "experiments/scenario/sections.hpp"
#include "experiments/scenario/table_reader.hpp"
#include "experiments/scenario/xml_loader.hpp"

namespace fomoe::scenario {
namespace {

std::string as_rate(double bytes_per_s) { return fmt::format("{:.4g} Gbit/s", bytes_per_s * 8 / 1e9); }

platforms::Platform first_sites(const platforms::Platform& all, int count) {
  platforms::Platform platform;
  platform.name = all.name;
  platform.provenance = all.provenance;
  platform.sites.assign(all.sites.begin(), all.sites.begin() + count);
  for (int from = 0; from < count; ++from) {
    for (int to = 0; to < count; ++to) platform.paths.push_back(all.path(from, to));
  }
  return platform;
}

platforms::Platform from_file(const Document& document, const TableReader& table) {
  for (const char* key : {"bandwidth", "uplink", "downlink", "latency"}) {
    if (table.has(key))
      table.refuse(key, "it beside file", "link rates and latencies in the platform file alone");
  }
  const std::string path = document.beside(table.text("file"));
  const platforms::Platform all = is_xml_platform(path) ? read_xml_platform(path) : read_platform_file(path);
  if (!table.has("sites")) return all;
  const int count = table.small_count("sites");
  if (count > all.size()) {
    table.refuse("sites", std::to_string(count), fmt::format("at most the {} sites of the file", all.size()));
  }
  return first_sites(all, count);
}

platforms::Platform equal_sites(const TableReader& table) {
  const int sites = table.small_count("sites");
  if (!table.has("bandwidth") && !table.has("uplink") && !table.has("downlink"))
    (void)table.quantity("bandwidth");
  if (table.has("bandwidth") && table.has("uplink") && table.has("downlink")) {
    table.refuse("bandwidth", "it beside uplink and downlink", "bandwidth, or uplink and downlink");
  }
  // bandwidth gives both directions; uplink or downlink beside it is the one that differs.
  const auto direction = [&](const char* key) {
    return table.quantity(table.has(key) || !table.has("bandwidth") ? key : "bandwidth");
  };
  const double uplink = direction("uplink"), downlink = direction("downlink"),
               latency_s = table.quantity("latency");
  platforms::Platform platform = platforms::uniform(sites, uplink, downlink, latency_s);
  platform.provenance.push_back({"link rates", Origin::assumed,
                                 fmt::format("given in the scenario: {} up and {} down at each of {} sites",
                                             as_rate(uplink), as_rate(downlink), sites)});
  platform.provenance.push_back(
      {"latency", Origin::assumed,
       fmt::format("given in the scenario: {:.4g} ms one way between any two sites", latency_s * 1e3)});
  return platform;
}

}  // namespace

platforms::Platform read_platform(const Document& document) {
  const TableReader table(document, scenario_keys(), "platform", find_table(document, "platform"));
  return table.has("file") ? from_file(document, table) : equal_sites(table);
}

}  // namespace fomoe::scenario
