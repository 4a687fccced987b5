#include <fmt/format.h>

#include "experiments/files/prices_file.hpp"
#include "experiments/scenario/sections/sections.hpp"
#include "experiments/scenario/sections/site_values.hpp"
#include "experiments/scenario/toml/date.hpp"
#include "experiments/scenario/toml/table_reader.hpp"

namespace fomoe::scenario {
namespace {

costmodel::Prices given_prices(const TableReader& table, int sites) {
  costmodel::Prices prices;
  const auto amount = [&](const char* key) {
    const Money money = table.money(key);
    if (prices.currency.empty()) prices.currency = money.currency;
    if (money.currency != prices.currency)
      table.refuse(key, money.currency, fmt::format("{}, the currency of gpu_hour", prices.currency));
    return money.amount;
  };
  costmodel::SitePrices row;
  row.gpu_price_per_s = amount("gpu_hour") / 3600;
  if (table.has("egress_per_gb")) {
    costmodel::EgressTier all;
    all.price_per_byte = amount("egress_per_gb") / 1e9;
    row.egress = {all};
  }
  if (table.has("port_month")) row.port_price_per_month = amount("port_month");
  if (table.has("kwh")) row.energy_price_per_joule = amount("kwh") / costmodel::kJoulesPerKwh;
  if (table.has("as_of")) prices.as_of = date(table, "as_of");
  prices.of_all_sites = true;
  prices.sites.assign(static_cast<std::size_t>(sites), row);
  prices.provenance.push_back(
      {"prices", Origin::assumed,
       fmt::format("given in the scenario, {}",
                   prices.as_of.empty() ? "their date is not stated" : "as of " + prices.as_of)});
  return prices;
}

/// Another price of a GPU at all sites; everything else is the file's.
void set_gpu_price(const TableReader& table, costmodel::Prices& prices) {
  const Money money = table.money("gpu_hour");
  if (money.currency != prices.currency)
    table.refuse("gpu_hour", money.currency,
                 fmt::format("{}, the currency of the price file", prices.currency));
  for (costmodel::SitePrices& site : prices.sites) site.gpu_price_per_s = money.amount / 3600;
  prices.provenance.push_back({"price of a GPU", Origin::assumed,
                               fmt::format("{} {:g} an hour at all sites, instead of the prices in the file",
                                           money.currency, money.amount)});
}

std::optional<costmodel::Prices> read_table(const Document& document, const platforms::Platform& platform) {
  const toml::table* section = find_table(document, "prices");
  if (section == nullptr) return std::nullopt;
  const TableReader table(document, scenario_keys(), "prices", section);
  if (!table.has("file")) {
    table.only_together("pricing", "file");
    if (!table.has("gpu_hour")) table.refuse("gpu_hour", "nothing", "a price file, or gpu_hour");
    return given_prices(table, platform.size());
  }
  for (const char* key : {"egress_per_gb", "port_month", "kwh", "as_of"}) {
    if (table.has(key))
      table.refuse(key, fmt::format("both {} and file", key), "prices only in the price file");
  }
  costmodel::Prices prices = read_price_file(
      table.file("file"), pricing_of_sites(document, platform, table.text("pricing")), platform);
  if (table.has("gpu_hour")) set_gpu_price(table, prices);
  return prices;
}

}  // namespace

std::optional<costmodel::Prices> read_prices(const Document& document, const platforms::Platform& platform) {
  std::optional<costmodel::Prices> prices = read_table(document, platform);
  set_prices_of_sites(document, platform, prices);
  if (prices)
    add_store_prices(document, *prices);
  else
    refuse_store_prices(document);
  return prices;
}

void read_energy(const Document& document, costmodel::Scenario& scenario) {
  const toml::table* section = find_table(document, "energy");
  if (section == nullptr) return;
  const TableReader table(document, scenario_keys(), "energy", section);
  costmodel::GpuPower& power = scenario.power.emplace();
  table.set_members(scenario);
  if (table.has("gpu_power")) return;
  const Accelerator* accelerator = read_accelerator(document);
  if (accelerator != nullptr && accelerator->power_w) {
    power.board_w = *accelerator->power_w;
    scenario.catalogue.push_back(
        from_catalogue("GPU power", fmt::format("{:g} W", power.board_w), *accelerator));
  } else {
    (void)table.quantity("gpu_power");  // refuses its absence
  }
}

}  // namespace fomoe::scenario
