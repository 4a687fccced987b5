#include <fmt/format.h>
#include <fnmatch.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "experiments/files/link_trace_csv.hpp"
#include "experiments/files/platform_file.hpp"
#include "experiments/files/xml_loader.hpp"
#include "experiments/scenario/keys/key_tables.hpp"
#include "experiments/scenario/sections/sections.hpp"
#include "experiments/scenario/sections/site_values.hpp"
#include "experiments/scenario/toml/table_reader.hpp"
#include "experiments/text/suggest.hpp"
#include "platforms/choose_sites.hpp"

namespace fomoe::scenario {
namespace {

// One-way latency that is assumed between two generated sites if both are copies of the same site.
constexpr double kSameSiteLatency_s = 0.0005;

std::string as_rate(double bytes_per_s) { return fmt::format("{:.4g} Gbit/s", bytes_per_s * 8 / 1e9); }

void refuse_beside(const TableReader& table, const char* what, std::initializer_list<const char*> keys,
                   const std::string& expected) {
  for (const char* key : keys) {
    if (table.has(key)) table.refuse(key, fmt::format("{} together with {}", key, what), expected);
  }
}

/// The sites that use_sites names, each by its name or by a pattern with * for any characters.
platforms::Platform named_sites(const TableReader& table, const platforms::Platform& all) {
  std::vector<std::string> names;
  for (const platforms::Site& site : all.sites) names.push_back(site.name);
  std::vector<int> chosen;
  const auto is_chosen = [&](int index) {
    return std::find(chosen.begin(), chosen.end(), index) != chosen.end();
  };
  for (const std::string& name : table.list("use_sites")) {
    const auto found = std::find(names.begin(), names.end(), name);
    if (found != names.end()) {
      const int index = static_cast<int>(found - names.begin());
      if (is_chosen(index)) table.refuse("use_sites", fmt::format("\"{}\" twice", name), "each site once");
      chosen.push_back(index);
      continue;
    }
    bool any = false;
    for (int index = 0; index < all.size(); ++index) {
      if (fnmatch(name.c_str(), names[static_cast<std::size_t>(index)].c_str(), 0) != 0) continue;
      any = true;
      if (!is_chosen(index)) chosen.push_back(index);
    }
    if (!any)
      table.refuse("use_sites", fmt::format("\"{}\"", name),
                   "names of the file's sites, or patterns that match them: " + joined(names),
                   nearest(name, names));
  }
  return platforms::chosen_sites(all, chosen);
}

/// Reads the rates and latencies over time, which refer to the links of `platform`.
void read_trace(const TableReader& table, platforms::Platform& platform) {
  if (table.has("trace")) {
    read_link_trace_csv(table.file("trace"), platform);
    if (table.has("trace_period")) platform.changes_period_s = table.quantity("trace_period");
    if (platform.changes_period_s > 0 && platform.changes.back().at_s >= platform.changes_period_s)
      table.refuse("trace_period", "a period that is not longer than the trace",
                   fmt::format("more than {:g}s, the time of the last change in the trace",
                               platform.changes.back().at_s));
    if (table.has("trace_start")) platform.changes_start_s = table.quantity("trace_start");
  } else {
    for (const char* key : {"trace_period", "trace_start"}) table.only_together(key, "trace");
  }
}

platforms::Platform from_file(const TableReader& table, std::uint64_t seed) {
  refuse_beside(table, "file", {"preset", "bandwidth", "uplink", "downlink", "latency"},
                "link rates and latencies only in the platform file (rate_factor scales all its rates)");
  const std::string path = table.file("file");
  refuse_other_kinds(path);
  platforms::UsedSites used;
  if (table.has("use_sites"))
    used.names = table.list("use_sites");
  else if (table.has("sites") && !table.boolean("generate"))
    used.first = table.small_count("sites");
  platforms::Platform all =
      is_xml_platform(path) ? read_xml_platform(path, used) : read_platform_file(path, used);
  if (table.has("use_sites"))
    refuse_beside(table, "use_sites", {"sites", "generate"}, "only one of use_sites, sites and generate");
  if (table.boolean("generate")) {
    const double sigma = table.number("rate_spread");
    platforms::Platform drawn =
        platforms::generated(all, table.small_count("sites"), seed, sigma, kSameSiteLatency_s);
    drawn.provenance.push_back(
        {"sites", Origin::assumed,
         fmt::format("generated at random, each site as a variation of one site of {}; the logarithm of "
                     "every rate deviates by a normally distributed amount with a standard deviation of {}; "
                     "{} ms between two variations of the same site",
                     all.name, sigma, kSameSiteLatency_s * 1e3)});
    read_trace(table, drawn);
    return drawn;
  }
  read_trace(table, all);  // may name links of sites that are not used
  if (table.has("use_sites")) return named_sites(table, all);
  if (!table.has("sites")) return all;
  const int count = table.small_count("sites");
  if (count > all.size()) {
    table.refuse("sites", std::to_string(count),
                 fmt::format("at most the {} sites of the file, or generate = true", all.size()));
  }
  platforms::Platform first = platforms::first_sites(all, count);
  if (count < all.size())
    first.provenance.push_back(
        {"sites", Origin::assumed,
         fmt::format("the first {} of the {} sites of the file; use_sites chooses others", count,
                     all.size())});
  return first;
}

platforms::Platform equal_sites(const TableReader& table) {
  const int sites = table.small_count("sites");
  if (!table.has("bandwidth") && !table.has("uplink") && !table.has("downlink"))
    (void)table.quantity("bandwidth");
  if (table.has("bandwidth") && table.has("uplink") && table.has("downlink")) {
    table.refuse("bandwidth", "bandwidth together with uplink and downlink",
                 "either bandwidth, or uplink and downlink");
  }
  // bandwidth sets both directions; uplink or downlink overrides one of them.
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

platforms::Platform consumer(int sites) {
  platforms::Platform platform = platforms::uniform(sites, bits_to_bytes(20e6), bits_to_bytes(100e6), 0.015);
  platform.name = "consumer";
  platform.provenance.push_back(
      {"links", Origin::assumed, "preset consumer: 100 Mbit/s down, 20 Mbit/s up, 15 ms"});
  return platform;
}

// The first half of the sites is on one side. One backbone of 10 Gb/s each way connects the two sides.
platforms::Platform two_continents(int sites) {
  platforms::Platform platform = platforms::uniform(sites, bits_to_bytes(10e9), bits_to_bytes(10e9), 0.005);
  platform.name = "two-continents";
  platform.shared_links = {{"backbone west to east", bits_to_bytes(10e9)},
                           {"backbone east to west", bits_to_bytes(10e9)}};
  platform.shared_sets = {{{0}}, {{1}}};
  for (int site = 0; site < sites; ++site)
    platform.sites[static_cast<std::size_t>(site)].region = 2 * site < sites ? "west" : "east";
  for (int from = 0; from < sites; ++from) {
    for (int to = 0; to < sites; ++to) {
      const bool from_west = 2 * from < sites, to_west = 2 * to < sites;
      if (from_west != to_west)
        platform.paths.set(from, to, {0.040, platforms::kUnlimited, from_west ? 0 : 1});
    }
  }
  platform.provenance.push_back({"links", Origin::assumed,
                                 "preset two-continents: 10 Gbit/s up and down at each site, 5 ms within a "
                                 "continent; 40 ms and a shared 10 Gbit/s each way between the two halves of "
                                 "the sites"});
  return platform;
}

platforms::Platform preset(const TableReader& table) {
  refuse_beside(table, "preset", {"bandwidth", "uplink", "downlink", "latency"},
                "no link rates and latencies, because the preset has its own");
  const int sites = table.small_count("sites");
  return table.text("preset") == "consumer" ? consumer(sites) : two_continents(sites);
}

}  // namespace

platforms::Platform read_all_sites(const Document& document) {
  const TableReader table(document, scenario_keys(), "platform", find_table(document, "platform"));
  if (!table.has("file")) return platforms::uniform(static_cast<int>(kMaxSites), 1, 1, 0);
  const std::string path = table.file("file");
  const platforms::UsedSites names_only{{}, 0};
  return is_xml_platform(path) ? read_xml_platform(path, names_only) : read_platform_file(path, names_only);
}

namespace {

/// What the rates are of, if the scenario says it instead of the platform file.
void set_carriers(const TableReader& table, platforms::Platform& platform) {
  if (!table.has("rates_of")) return;
  const bool machine = table.text("rates_of") == "machine";
  for (platforms::Site& site : platform.sites) site.machine_uplink = site.machine_downlink = machine;
  platform.machine_paths = machine;
}

/// Says what several machines change, and what they do not.
void state_machines(platforms::Platform& platform) {
  std::vector<std::string> multiplied, lines;
  for (const platforms::Site& site : platform.sites) {
    if (site.machines == 1) continue;
    (site.machine_uplink || site.machine_downlink ? multiplied : lines)
        .push_back(fmt::format("{} × {}", site.name, site.machines));
  }
  if (!multiplied.empty())
    platform.provenance.push_back({"link rates", Origin::assumed,
                                   fmt::format("of one machine × machines that carry a site's traffic: {}",
                                               shortened(joined(multiplied)))});
  if (!lines.empty())
    platform.provenance.push_back(
        {"link rates", Origin::assumed,
         fmt::format("of lines, which several machines share: {}; rates_of = \"machine\" multiplies rates",
                     shortened(joined(lines)))});
}

}  // namespace

void read_platform(const Document& document, costmodel::Scenario& scenario) {
  const TableReader table(document, scenario_keys(), "platform", find_table(document, "platform"));
  if (!table.has("file")) {
    if (table.has("use_sites"))
      table.refuse("use_sites", "use_sites without file", "use_sites only together with a platform file");
    if (table.boolean("generate"))
      table.refuse("generate", "generate without file", "generate only together with a platform file");
    if (table.has("rate_spread"))
      table.refuse("rate_spread", "rate_spread without file",
                   "rate_spread only together with a platform file and generate = true");
  }
  platforms::Platform& platform = scenario.platform;
  platform = table.has("file")     ? from_file(table, scenario.seed)
             : table.has("preset") ? preset(table)
                                   : equal_sites(table);
  if (!table.has("file")) read_trace(table, platform);
  if (table.has("mtu")) platform.packet_bytes = table.quantity("mtu");
  table.set_members(scenario);
  read_store(document, scenario);
  set_carriers(table, platform);
  platform = with_own_lines(document, std::move(platform));
  platform = with_machines_of_sites(document, std::move(platform), table.small_count("gateways"));
  state_machines(platform);
  platform = with_own_paths(document, std::move(platform));
  if (const double factor = table.number("rate_factor"); factor != 1) {
    platform = platforms::scaled_bandwidth(std::move(platform), factor);
    platform.provenance.push_back(
        {"link rates", Origin::assumed, fmt::format("× {}: platform.rate_factor", factor)});
  }
}

}  // namespace fomoe::scenario
