#include "costmodel/value/cost.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>

#include "costmodel/inputs/at_site.hpp"
#include "costmodel/plan/method.hpp"

namespace fomoe::costmodel {

namespace {

/// "8 GPUs per site", the GPUs of the only site that trains, or "24 GPUs of all sites" if sites differ.
std::string gpus_text(const Scenario& scenario) {
  if (scenario.strategy.method->one_site)
    return std::to_string(all_gpus(scenario)) + " GPUs of the only site that trains";
  const bool differ = !scenario.site_compute.empty();
  const int gpus = differ ? all_gpus(scenario) : scenario.gpus.count;
  return std::to_string(gpus) + (gpus == 1 ? " GPU" : " GPUs") + (differ ? " of all sites" : " per site");
}

}  // namespace

int all_gpus(const Scenario& scenario) {
  if (scenario.strategy.method->one_site) return AtSite(scenario, 0).scenario().gpus.count;
  if (scenario.site_compute.empty()) return scenario.gpus.count * scenario.sites();
  int gpus = 0;
  for (const SiteCompute& site : scenario.site_compute) gpus += site.gpus.count;
  return gpus;
}

SiteCost& SiteCost::operator+=(const SiteCost& other) {
  gpus += other.gpus;
  egress += other.egress;
  ports += other.ports;
  energy += other.energy;
  joules += other.joules;
  return *this;
}

bool egress_by_destination(const std::optional<Prices>& prices) {
  return prices && std::any_of(prices->sites.begin(), prices->sites.end(),
                               [](const SitePrices& site) { return !site.egress_to.empty(); });
}

namespace {

/// Whether the price of a byte depends on how many are sent in a month.
bool egress_in_tiers(const Prices& prices) {
  return std::any_of(prices.sites.begin(), prices.sites.end(), [](const SitePrices& site) {
    return site.egress.size() > 1 || std::any_of(site.egress_to.begin(), site.egress_to.end(),
                                                 [](const EgressTo& to) { return to.tiers.size() > 1; });
  });
}

/// The bytes of each price list of a site: those of egress_to, and last those of egress.
std::vector<double> bytes_by_price(const Scenario& scenario, int site, const SiteTraffic& sent) {
  const std::vector<EgressTo>& lists = scenario.prices->sites[static_cast<std::size_t>(site)].egress_to;
  std::vector<double> bytes(lists.size() + 1, 0.0);
  if (lists.empty()) return {sent.bytes};
  for (int to = 0; to < scenario.sites(); ++to) {
    if (to == site) continue;
    const std::string& name = scenario.platform.sites[static_cast<std::size_t>(to)].name;
    std::size_t found = lists.size(), length = 0;
    for (std::size_t i = 0; i < lists.size(); ++i) {
      if (!name.starts_with(lists[i].sites) || (found < lists.size() && lists[i].sites.size() <= length))
        continue;
      found = i;
      length = lists[i].sites.size();
    }
    bytes[found] +=
        sent.to.empty() ? sent.bytes / (scenario.sites() - 1) : sent.to[static_cast<std::size_t>(to)];
  }
  // What goes to a store is in no price list of its own.
  if (scenario.strategy.collective == Collective::store && !sent.to.empty())
    bytes.back() += std::max(0.0, sent.bytes - std::accumulate(sent.to.begin(), sent.to.end(), 0.0));
  return bytes;
}

}  // namespace

SiteCost site_cost(const Scenario& scenario, int site, double gpus, const SiteTraffic& sent,
                   double duration_s, double busy_s) {
  const auto index = static_cast<std::size_t>(site);
  const std::optional<GpuPower>& power =
      scenario.site_compute.empty() ? scenario.power : scenario.site_compute[index].power;
  SiteCost cost;
  if (power) cost.joules = energy_joules(*power, gpus, duration_s, std::min(busy_s, duration_s));
  if (!scenario.prices) return cost;
  const SitePrices& prices = scenario.prices->sites[index];
  cost.gpus = gpu_price(prices, gpus, duration_s);
  const std::vector<double> bytes = bytes_by_price(scenario, site, sent);
  for (std::size_t i = 0; i < bytes.size(); ++i)
    cost.egress += egress_price(i < prices.egress_to.size() ? prices.egress_to[i].tiers : prices.egress,
                                bytes[i], duration_s);
  cost.ports = port_price(prices, duration_s);
  cost.energy = prices.energy_price_per_joule * cost.joules;
  return cost;
}

void add_cost(RunReport& report, const Scenario& scenario) {
  if (!scenario.prices && !scenario.power) return;
  const double duration_s = report.wall_clock_s;
  const auto rounds = static_cast<double>(report.round.count);
  SiteCost sum;
  for (std::size_t i = 0; i < report.sites.size(); ++i) {
    if (i > 0 && scenario.strategy.method->one_site) break;
    const SiteReport& site = report.sites[i];
    const int index = static_cast<int>(i);
    sum += site_cost(scenario, index, gpus_of_site(scenario, index).count,
                     {site.bytes_sent, site.bytes_sent_to}, duration_s, site.compute_s * rounds);
  }
  Cost cost;
  cost.gpu_cost = sum.gpus;
  cost.egress_cost = sum.egress;
  cost.port_cost = sum.ports;
  cost.energy_cost = sum.energy;
  if (scenario.prices && report.store) cost.store_cost = store_price(scenario.prices->store, *report.store);
  cost.cost_total = sum.total() + cost.store_cost;
  if (scenario.prices) {
    cost.currency = scenario.prices->currency;
    cost.as_of = scenario.prices->as_of;
    const auto& stated = scenario.prices->provenance;
    report.provenance.insert(report.provenance.end(), stated.begin(), stated.end());
    report.provenance.push_back(
        {"cost", Origin::computed,
         gpus_text(scenario) +
             " for the whole wall clock; egress of all bytes that a site sends, in monthly tiers" +
             (egress_by_destination(scenario.prices) ? ", by destination" : "") +
             (scenario.quality && egress_in_tiers(*scenario.prices)
                  ? " (at equal loss, egress grows as the tokens do, without regard to its tiers)"
                  : "") +
             "; ports for whole months. " +
             (report.store ? "Requests to the store, and what it sends, at its prices. " : "") +
             (scenario.failures && scenario.failures->at_random()
                  ? "The cost with failures and interruptions is that of their median run. Storage"
                  : "Interruptions of spot GPUs (without [failures]), storage") +
             " and staff are not included"});
  }
  if (scenario.power) {
    cost.energy_kwh = sum.joules / kJoulesPerKwh;
    report.provenance.push_back({"energy", Origin::computed,
                                 "GPU boards only, from the scenario's power, idle share and PUE; hosts and "
                                 "network are not included"});
  }
  report.cost = cost;
}

double egress_price_of_month(const std::vector<EgressTier>& tiers, double bytes) {
  double sum = 0;
  double from_bytes = 0;
  for (std::size_t i = 0; i < tiers.size(); ++i) {
    double in_tier = std::max(bytes - from_bytes, 0.0);
    if (i + 1 < tiers.size()) in_tier = std::min(in_tier, tiers[i].up_to_bytes - from_bytes);
    sum = sum + in_tier * tiers[i].price_per_byte;
    from_bytes = tiers[i].up_to_bytes;
  }
  return sum;
}

double egress_price(const std::vector<EgressTier>& tiers, double bytes, double duration_s) {
  const double months = duration_s / kMonthSeconds;
  const double whole = -std::ceil(-months);
  const double of_whole_month = bytes / std::max(months, 1.0);
  return whole * egress_price_of_month(tiers, of_whole_month) +
         egress_price_of_month(tiers, std::max(bytes - whole * of_whole_month, 0.0));
}

}  // namespace fomoe::costmodel
