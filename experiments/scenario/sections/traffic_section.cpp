#include <algorithm>

#include "experiments/scenario/sections/sections.hpp"
#include "experiments/scenario/toml/table_reader.hpp"
#include "experiments/text/suggest.hpp"

namespace fomoe::scenario {
namespace {

/// The index of the site with this name.
std::optional<int> site_of(const TableReader& table, const char* key, const platforms::Platform& platform) {
  if (!table.has(key)) return std::nullopt;
  const std::string name = table.text(key);
  std::vector<std::string> names;
  for (const platforms::Site& site : platform.sites) names.push_back(site.name);
  const auto found = std::find(names.begin(), names.end(), name);
  if (found != names.end()) return static_cast<int>(found - names.begin());
  const std::string meant = nearest(name, names);
  table.refuse_for_example(key, '"' + name + '"', "the name of a site: \"" + joined(names, "\", \"") + '"',
                           '"' + names.front() + '"', meant.empty() ? "" : '"' + meant + '"');
}

}  // namespace

void read_traffic(const Document& document, costmodel::Scenario& scenario) {
  const TableReader table(document, scenario_keys(), "traffic", find_table(document, "traffic"));
  table.only_together("data_bytes_per_token", "data_site");
  table.only_together("checkpoint_rounds", "checkpoint_site");
  table.only_together("rejoin_rounds", "rejoin_site");
  table.set_members(scenario);
  costmodel::ExtraTraffic& traffic = scenario.traffic;
  const platforms::Platform& platform = scenario.platform;
  traffic.data_site = site_of(table, "data_site", platform);
  traffic.checkpoint_site = site_of(table, "checkpoint_site", platform);
  traffic.rejoin_site = site_of(table, "rejoin_site", platform);
  if (traffic.rejoin_site && platform.size() == 1)
    table.refuse("rejoin_site", "rejoin_site with one site",
                 "at least two sites, so that another site has the training state");
}

}  // namespace fomoe::scenario
