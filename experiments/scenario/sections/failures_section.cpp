#include <fmt/format.h>

#include <cmath>

#include "experiments/scenario/sections/sections.hpp"
#include "experiments/scenario/sections/site_values.hpp"
#include "experiments/scenario/toml/table_reader.hpp"
#include "experiments/text/units.hpp"

namespace fomoe::scenario {
namespace {

/// Reads "SITE at TIME for TIME".
costmodel::Outage read_outage(const TableReader& table, const std::string& text,
                              const platforms::Platform& platform) {
  const std::string form =
      "\"SITE at TIME for TIME\", such as \"" + platform.sites.front().name + " at 10min for 3min\"";
  const auto refuse = [&](const std::string& reason) {
    table.refuse("outages", '"' + text + '"' + (reason.empty() ? "" : ", where " + reason), form);
  };
  const std::size_t at = text.rfind(" at "), lasts = text.rfind(" for ");
  if (at == std::string::npos || lasts == std::string::npos || lasts < at + 4) refuse("");
  const std::string name = text.substr(0, at);
  costmodel::Outage outage;
  while (outage.site < platform.size() && platform.sites[static_cast<std::size_t>(outage.site)].name != name)
    ++outage.site;
  if (outage.site == platform.size()) refuse('"' + name + "\" is not the name of a site");
  try {
    outage.start_s = parse_quantity(text.substr(at + 4, lasts - at - 4), Quantity::duration);
    outage.duration_s = parse_quantity(text.substr(lasts + 5), Quantity::duration);
  } catch (const QuantityError& error) {
    refuse(error.what());
  }
  return outage;
}

/// A site that has stopped cannot stop again.
void check_apart(const TableReader& table, const std::vector<costmodel::Outage>& outages,
                 const platforms::Platform& platform) {
  for (const costmodel::Outage& one : outages) {
    for (const costmodel::Outage& other : outages) {
      if (&one == &other || one.site != other.site || other.start_s < one.start_s ||
          other.start_s > one.start_s + one.duration_s)
        continue;
      table.refuse("outages",
                   fmt::format("an outage of {} that begins before the end of another one",
                               platform.sites[static_cast<std::size_t>(one.site)].name),
                   "outages of a site one after the other");
    }
  }
}

}  // namespace

void read_failures(const Document& document, costmodel::Scenario& scenario) {
  const toml::table* found = find_table(document, "failures");
  if (found == nullptr) return set_failures_of_sites(document, scenario);
  const TableReader table(document, scenario_keys(), "failures", found);
  table.only_one_of("checkpoint_time", "checkpoint_rounds");
  table.only_one_of("link_repair", "links_stay_dead");
  if (!table.has("checkpoint_cost") && !table.has("storage_bandwidth"))
    table.refuse("checkpoint_cost", "nothing", "checkpoint_cost or storage_bandwidth");
  costmodel::Failures& failures = scenario.failures.emplace();
  table.set_members(scenario);
  if (table.boolean("links_stay_dead")) failures.link_repair_s.reset();
  if (failures.at_random()) {
    const auto state = [&](const char* key) {
      if (!table.has(key))
        failures.not_given.push_back(
            fmt::format("{} = {}", key, find_key(dotted("failures", key))->fallback));
    };
    for (const char* key : {"detection_time", "restart_time", "policy"}) state(key);
    if (std::isfinite(failures.link_mtbf_s) && !table.has("links_stay_dead")) state("link_repair");
  }
  set_failures_of_sites(document, scenario);
  if (table.has("timeout") && failures.policy == costmodel::FailurePolicy::wait)
    table.refuse("timeout", "timeout with policy = \"wait\"", "timeout only with policy = \"drop\"");
  for (const std::string& outage : table.words("outages"))
    failures.outages.push_back(read_outage(table, outage, scenario.platform));
  check_apart(table, failures.outages, scenario.platform);
}

}  // namespace fomoe::scenario
