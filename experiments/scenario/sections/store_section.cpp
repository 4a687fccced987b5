#include <fmt/format.h>

#include "experiments/scenario/keys/key_tables.hpp"
#include "experiments/scenario/sections/sections.hpp"
#include "experiments/scenario/toml/table_reader.hpp"

namespace fomoe::scenario {
namespace {

std::string as_rate(const TableReader& table, const char* key) {
  return table.has(key) ? fmt::format("{:.4g} Gbit/s", table.quantity(key) * 8 / 1e9) : "no limit of its own";
}

}  // namespace

void read_store(const Document& document, costmodel::Scenario& scenario) {
  const toml::table* section = find_table(document, "platform.store");
  if (section == nullptr) return;
  const TableReader table(document, scenario_keys(), "platform.store", section);
  platforms::Store& store = scenario.platform.store.emplace();
  table.set_members(scenario);
  if (table.has("result_share") && !store.aggregates)
    table.refuse("result_share", "result_share together with aggregates = false",
                 "aggregates = true, because there is no result otherwise");
  scenario.platform.provenance.push_back(
      {"store", Origin::assumed,
       fmt::format("{} to all sites together, {} from all of them, {:.4g} ms one way to each site{}; {}",
                   as_rate(table, "uplink"), as_rate(table, "downlink"), store.latency_s * 1e3,
                   table.has("latency") ? "" : " (not given)",
                   store.aggregates ? "combines what sites upload, which counts as no time"
                                    : "each site downloads what the others have uploaded")});
}

void add_store_prices(const Document& document, costmodel::Prices& prices) {
  const toml::table* section = find_table(document, "platform.store");
  if (section == nullptr) return;
  const TableReader table(document, scenario_keys(), "platform.store", section);
  const auto amount = [&](const char* key) {
    if (!table.has(key)) return 0.0;
    const Money money = table.money(key);
    if (money.currency != prices.currency)
      table.refuse(key, money.currency, fmt::format("{}, the currency of [prices]", prices.currency));
    return money.amount;
  };
  prices.store = {amount("million_requests") / 1e6, amount("egress_per_gb") / 1e9};
}

void refuse_store_prices(const Document& document) {
  const toml::table* section = find_table(document, "platform.store");
  if (section == nullptr) return;
  const TableReader table(document, scenario_keys(), "platform.store", section);
  for (const char* key : {"million_requests", "egress_per_gb"}) {
    if (table.has(key))
      table.refuse(key, fmt::format("{} without [prices]", key),
                   "the table [prices] as well, because the store is only a part of what a run costs",
                   "prices.gpu_hour = \"2.50USD\"");
  }
}

}  // namespace fomoe::scenario
