// Reads the [[site]] tables: keys of [compute] that differ at some sites, and each site's part of the batch.
#include <fmt/format.h>

#include <algorithm>

#include "costmodel/compute/site_times.hpp"
#include "experiments/scenario/sections/sections.hpp"
#include "experiments/scenario/sections/site_values.hpp"
#include "experiments/scenario/toml/table_reader.hpp"
#include "experiments/text/suggest.hpp"

namespace fomoe::scenario {
namespace {

std::vector<std::string> names_of(const platforms::Platform& platform) {
  std::vector<std::string> names;
  for (const platforms::Site& site : platform.sites) names.push_back(site.name);
  return names;
}

/// Refuses a name that no site of the platform has, not even one that is not used.
void check_exists(const TableReader& table, const Document& document, const platforms::Platform& platform) {
  const std::string name = table.text("name");
  std::vector<std::string> names = names_of(platform);
  const auto any = [&] {
    return std::any_of(names.begin(), names.end(),
                       [&](const auto& known) { return means_site(name, known); });
  };
  if (any()) return;
  // A name of a site that is not used is no mistake.
  names = names_of(read_all_sites(document));
  if (!any())
    table.refuse("name", '"' + name + '"',
                 "the name of a site, or a pattern that matches some: " + shortened(joined(names)),
                 nearest(name, names));
}

/// A time that is given for a whole site does not follow from other GPUs.
void check_step_time(const TableReader& table, const costmodel::ComputeSpec& compute) {
  for (const char* key : {"profile", "step_time", "mfu", "kernel_efficiency"})
    if (table.has(key)) return;
  if (std::holds_alternative<costmodel::AssumedDevice>(compute)) return;
  const bool given = std::holds_alternative<costmodel::GivenStepTime>(compute);
  for (const char* key : {"accelerator", "peak_flops", "gpus_per_site", "data_parallel"}) {
    if (!table.has(key) || (!given && std::string_view(key) != "accelerator")) continue;
    table.refuse(key, fmt::format("{} without a step time of the site", key),
                 fmt::format("step_time, profile or mfu for this site too, because {} of [compute] describes "
                             "other GPUs",
                             given ? "step_time" : "the profile"));
  }
}

costmodel::SiteCompute read_own_compute(const Document& document, const toml::table& section,
                                        const costmodel::Scenario& scenario,
                                        const std::vector<Provenance>& notes_of_all_sites, bool required) {
  Document own = document.with_keys_of("compute", section);
  displace_alternatives(own);
  costmodel::Scenario site;
  site.model = scenario.model;
  site.catalogue = notes_of_all_sites;
  site.compute = read_compute(own, scenario.model, required);
  read_site_gpus(own, site);
  add_peak(own, site);
  // A device whose power is not known draws as much as the scenario's.
  const Accelerator* accelerator = read_accelerator(own);
  const bool known_power = accelerator == nullptr || accelerator->power_w.has_value();
  site.power = scenario.power;
  if (known_power) read_energy(own, site);
  return {site.compute, site.gpus, site.peak_flops, site.power, site.catalogue};
}

}  // namespace

void read_sites(const Document& document, costmodel::Scenario& scenario,
                const std::vector<Provenance>& notes_of_all_sites, bool compute_required) {
  const TableReader workload(document, scenario_keys(), "workload", find_table(document, "workload"));
  const bool balanced = workload.text("batch") == "balanced";
  const std::vector<std::string> names = names_of(scenario.platform);
  std::vector<double> shares(names.size(), 1);
  std::vector<bool> described(names.size(), false);
  bool any_share = false;
  std::vector<Provenance> unused;
  for (const toml::table* section : find_tables(document, "site")) {
    const TableReader table(document, own_site_keys(), "site", section, /*known=*/true);
    check_exists(table, document, scenario.platform);
    if (table.has("batch_share") && balanced)
      table.refuse("batch_share", "batch_share together with workload.batch = \"balanced\"",
                   "only one of them");
    const bool differs = describes_compute(*section);
    std::optional<costmodel::SiteCompute> own;
    if (std::none_of(names.begin(), names.end(),
                     [&](const std::string& name) { return means_site(table.text("name"), name); }))
      unused.push_back({"[[site]] " + table.text("name"), Origin::assumed, "describes no site that is used"});
    for (std::size_t i = 0; i < names.size(); ++i) {
      if (!means_site(table.text("name"), names[i])) continue;
      if (described[i])
        table.refuse("name", fmt::format("\"{}\", which is {} once more", table.text("name"), names[i]),
                     "each site in one [[site]]");
      described[i] = true;
      if (table.has("batch_share")) shares[i] = table.number("batch_share");
      any_share = any_share || table.has("batch_share");
      if (!differs) continue;
      if (!own) {
        check_step_time(table, scenario.compute);
        own = read_own_compute(document, *section, scenario, notes_of_all_sites, compute_required);
      }
      if (scenario.variation.from_samples &&
          !std::holds_alternative<costmodel::ProfiledCompute>(own->compute))
        table.refuse("name", fmt::format("no profile at {}, with compute.draw_samples", names[i]),
                     "a profile for each site, or no draw_samples");
      if (scenario.site_compute.empty())
        scenario.site_compute.assign(names.size(), {scenario.compute, scenario.gpus, scenario.peak_flops,
                                                    scenario.power, scenario.catalogue});
      scenario.site_compute[i] = *own;
    }
  }
  scenario.catalogue.insert(scenario.catalogue.end(), unused.begin(), unused.end());
  for (costmodel::SiteCompute& site : scenario.site_compute)
    site.catalogue.insert(site.catalogue.end(), unused.begin(), unused.end());
  if (any_share) scenario.workload.batch_shares = shares;
  if (balanced) scenario.workload.batch_shares = costmodel::balanced_shares(scenario);
}

}  // namespace fomoe::scenario
