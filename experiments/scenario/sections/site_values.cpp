#include "experiments/scenario/sections/site_values.hpp"

#include <fmt/format.h>
#include <fnmatch.h>

#include <algorithm>
#include <utility>

#include "experiments/text/suggest.hpp"

namespace fomoe::scenario {
namespace {

constexpr double kSecondsPerHour = 3600, kSecondsPerDay = 86400, kBytesPerGb = 1e9;

/// The first of the keys that the table has; nullptr if it has none.
const char* first_key(const TableReader& table, std::initializer_list<const char*> keys) {
  for (const char* key : keys)
    if (table.has(key)) return key;
  return nullptr;
}

const std::string& name_of(const platforms::Platform& platform, int site) {
  return platform.sites[static_cast<std::size_t>(site)].name;
}

/// The names of sites, for a note.
std::string listed(const std::vector<std::string>& names) { return shortened(joined(names)); }

}  // namespace

bool means_site(const std::string& pattern, const std::string& name) {
  return pattern == name || fnmatch(pattern.c_str(), name.c_str(), 0) == 0;
}

void each_site(const Document& document, const platforms::Platform& platform,
               const std::function<void(const TableReader& table, int site)>& visit) {
  for (const toml::table* section : find_tables(document, "site")) {
    const TableReader table(document, own_site_keys(), "site", section, /*known=*/true);
    const std::string pattern = table.text("name");
    for (int site = 0; site < platform.size(); ++site)
      if (means_site(pattern, name_of(platform, site))) visit(table, site);
  }
}

bool describes_compute(const toml::table& site) {
  return std::any_of(site.begin(), site.end(), [](const auto& entry) {
    return find_key(dotted("compute", entry.first.str())) != nullptr;
  });
}

platforms::Platform with_own_lines(const Document& document, platforms::Platform platform) {
  std::vector<std::string> changed;
  each_site(document, platform, [&](const TableReader& table, int site) {
    if (first_key(table, {"bandwidth", "uplink", "downlink"}) == nullptr) return;
    if (table.has("bandwidth") && table.has("uplink") && table.has("downlink"))
      table.refuse("bandwidth", "bandwidth together with uplink and downlink",
                   "either bandwidth, or uplink and downlink");
    platforms::Site& own = platform.sites[static_cast<std::size_t>(site)];
    const auto rate = [&](const char* key, double& bytes_per_s, bool& of_machine) {
      if (table.has("bandwidth")) bytes_per_s = table.quantity("bandwidth");
      if (table.has(key)) bytes_per_s = table.quantity(key);
      if (table.has("bandwidth") || table.has(key)) of_machine = false;
    };
    rate("uplink", own.uplink_bytes_per_s, own.machine_uplink);
    rate("downlink", own.downlink_bytes_per_s, own.machine_downlink);
    changed.push_back("the line of " + own.name);
  });
  if (!changed.empty())
    platform.provenance.push_back({"lines", Origin::assumed, "given in the scenario: " + listed(changed)});
  std::vector<std::string> others;  // known places of the platform file, of which the run uses fewer
  for (const toml::table* section : find_tables(document, "site")) {
    const std::string pattern =
        TableReader(document, own_site_keys(), "site", section, /*known=*/true).text("name");
    bool means = false;
    for (int site = 0; site < platform.size(); ++site)
      means = means || means_site(pattern, name_of(platform, site));
    if (!means) others.push_back(pattern);
  }
  if (!others.empty())
    platform.provenance.push_back({"[[site]]", Origin::assumed,
                                   "not among the sites of this run, and without effect: " + listed(others)});
  return platform;
}

platforms::Platform with_own_paths(const Document& document, platforms::Platform platform) {
  std::vector<std::string> changed, known;
  for (const platforms::Site& site : platform.sites) known.push_back(site.name);
  for (const toml::table* section : find_tables(document, "path")) {
    const TableReader table(document, scenario_keys(), "path", section, /*known=*/true);
    const auto end = [&](const char* key) {
      const std::string name = table.text(key);
      const auto found = std::find(known.begin(), known.end(), name);
      if (found == known.end())
        table.refuse(key, '"' + name + '"', "the name of a site that is used: " + listed(known),
                     nearest(name, known));
      return static_cast<int>(found - known.begin());
    };
    const int from = end("from"), to = end("to");
    if (from == to) table.refuse("to", "the sending site itself", "another site");
    platform.change_path(from, to, [&](platforms::Path& path) {
      if (table.has("bandwidth")) path.bandwidth_bytes_per_s = table.quantity("bandwidth");
      if (table.has("latency")) path.latency_s = table.quantity("latency");
    });
    changed.push_back("the path from " + table.text("from") + " to " + table.text("to"));
  }
  if (!changed.empty())
    platform.provenance.push_back({"paths", Origin::assumed, "given in the scenario: " + listed(changed)});
  return platform;
}

platforms::Platform with_machines_of_sites(const Document& document, platforms::Platform platform,
                                           int machines) {
  std::vector<int> each(platform.sites.size(), machines);
  each_site(document, platform, [&](const TableReader& table, int site) {
    const auto s = static_cast<std::size_t>(site);
    if (table.has("gateways")) {
      each[s] = table.small_count("gateways");
      platform.sites[s].own_machines = true;
    }
    if (table.has("streams")) platform.sites[s].streams = table.small_count("streams");
  });
  if (std::any_of(each.begin(), each.end(), [](int one) { return one != 1; }))
    platform = platforms::with_machines(std::move(platform), each);
  for (int from = 0; from < platform.size(); ++from) {
    const int streams = platform.sites[static_cast<std::size_t>(from)].streams;
    if (streams == 0) continue;
    for (int to = 0; to < platform.size(); ++to)
      if (from != to) platform.change_path(from, to, [&](platforms::Path& path) { path.streams = streams; });
  }
  return platform;
}

std::vector<std::string> pricing_of_sites(const Document& document, const platforms::Platform& platform,
                                          const std::string& usual) {
  std::vector<std::string> pricing(platform.sites.size(), usual);
  each_site(document, platform, [&](const TableReader& table, int site) {
    if (table.has("pricing")) pricing[static_cast<std::size_t>(site)] = table.text("pricing");
  });
  return pricing;
}

void set_prices_of_sites(const Document& document, const platforms::Platform& platform,
                         std::optional<costmodel::Prices>& prices) {
  std::vector<std::string> given;
  each_site(document, platform, [&](const TableReader& table, int site) {
    const char* first = first_key(table, {"pricing", "gpu_hour", "egress_per_gb", "port_month", "kwh"});
    if (first == nullptr) return;
    if (!prices)
      table.refuse(first, fmt::format("{} without prices of the other sites", first),
                   "[prices] with gpu_hour or file as well, for all sites");
    costmodel::SitePrices& row = prices->sites[static_cast<std::size_t>(site)];
    const auto amount = [&](const char* key) {
      const Money money = table.money(key);
      if (money.currency != prices->currency)
        table.refuse(key, money.currency, fmt::format("{}, the currency of [prices]", prices->currency));
      return money.amount;
    };
    if (table.has("pricing")) {
      const std::string pricing = table.text("pricing");
      row.pricing = pricing == "owned"  ? costmodel::Pricing::owned
                    : pricing == "spot" ? costmodel::Pricing::spot
                                        : costmodel::Pricing::on_demand;
    }
    if (table.has("gpu_hour")) row.gpu_price_per_s = amount("gpu_hour") / kSecondsPerHour;
    if (table.has("port_month")) row.port_price_per_month = amount("port_month");
    if (table.has("kwh")) row.energy_price_per_joule = amount("kwh") / costmodel::kJoulesPerKwh;
    if (table.has("egress_per_gb")) {
      costmodel::EgressTier all;
      all.price_per_byte = amount("egress_per_gb") / kBytesPerGb;
      row.egress = {all};
      row.egress_to.clear();
    }
    prices->of_all_sites = false;
    given.push_back(name_of(platform, site));
  });
  if (!given.empty())
    prices->provenance.push_back(
        {"prices of sites", Origin::assumed, "given in [[site]] for " + listed(given)});
}

void set_failures_of_sites(const Document& document, costmodel::Scenario& scenario) {
  const platforms::Platform& platform = scenario.platform;
  std::vector<bool> own_preemptions(platform.sites.size(), false);
  std::vector<costmodel::SiteFailures> sites;
  if (scenario.failures)
    for (int site = 0; site < platform.size(); ++site) sites.push_back(scenario.failures->at(site));
  const auto pricing = [&](int site) {
    return scenario.prices ? scenario.prices->sites[static_cast<std::size_t>(site)].pricing
                           : costmodel::Pricing::unknown;
  };
  each_site(document, platform, [&](const TableReader& table, int site) {
    const char* first =
        first_key(table, {"site_mtbf", "link_mtbf", "preemptions_per_day", "detection_time", "restart_time"});
    if (first == nullptr) return;
    if (!scenario.failures)
      table.refuse(first, fmt::format("{} without [failures]", first),
                   "[failures] with checkpoint_cost or storage_bandwidth as well");
    costmodel::SiteFailures& own = sites[static_cast<std::size_t>(site)];
    if (table.has("site_mtbf")) own.site_mtbf_s = table.quantity("site_mtbf");
    if (table.has("link_mtbf")) own.link_mtbf_s = table.quantity("link_mtbf");
    if (table.has("detection_time")) own.detection_s = table.quantity("detection_time");
    if (table.has("restart_time")) own.restart_s = table.quantity("restart_time");
    if (!table.has("preemptions_per_day")) return;
    if (pricing(site) == costmodel::Pricing::owned)
      table.refuse("preemptions_per_day", "preemptions of owned GPUs", "only GPUs that are not owned");
    own.preemptions_per_s = table.number("preemptions_per_day") / kSecondsPerDay;
    own_preemptions[static_cast<std::size_t>(site)] = true;
  });
  if (!scenario.failures) return;
  std::vector<std::string> owned, on_demand;
  for (int site = 0; site < platform.size(); ++site) {
    costmodel::SiteFailures& own = sites[static_cast<std::size_t>(site)];
    if (own.preemptions_per_s <= 0) continue;
    if (pricing(site) == costmodel::Pricing::on_demand) on_demand.push_back(name_of(platform, site));
    if (pricing(site) != costmodel::Pricing::owned || own_preemptions[static_cast<std::size_t>(site)])
      continue;
    own.preemptions_per_s = 0;
    owned.push_back(name_of(platform, site));
  }
  std::vector<std::string>& notes = scenario.failures->notes;
  if (!owned.empty()) notes.push_back("owned GPUs are not preempted: " + listed(owned));
  if (!on_demand.empty())
    notes.push_back(
        "GPUs with on-demand prices are preempted as preemptions_per_day says, although clouds preempt "
        "spot GPUs only: " +
        listed(on_demand));
  const costmodel::SiteFailures usual = scenario.failures->at(0);
  if (std::any_of(sites.begin(), sites.end(), [&](const auto& one) { return one != usual; }))
    scenario.failures->sites = std::move(sites);
}

}  // namespace fomoe::scenario
