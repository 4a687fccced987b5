#include "costmodel/value/cost.hpp"

#include <algorithm>
#include <cmath>
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

void add_cost(RunReport& report, const Scenario& scenario) {
  if (!scenario.prices && !scenario.power) return;
  const double duration_s = report.wall_clock_s;
  const auto rounds = static_cast<double>(report.round.count);
  Cost cost;
  double joules = 0;
  for (std::size_t i = 0; i < report.sites.size(); ++i) {
    if (i > 0 && scenario.strategy.method->one_site) break;
    const SiteReport& site = report.sites[i];
    const double busy_s = std::min(site.compute_s * rounds, duration_s);
    const AtSite at(scenario, static_cast<int>(i));
    const double gpus = at.scenario().gpus.count;
    const std::optional<GpuPower>& power = at.scenario().power;
    const double site_joules = power ? energy_joules(*power, gpus, duration_s, busy_s) : 0.0;
    joules += site_joules;
    if (!scenario.prices) continue;
    const SitePrices& prices = scenario.prices->sites[i];
    cost.gpu_cost += gpu_price(prices, gpus, duration_s);
    cost.egress_cost += egress_price(prices.egress, site.bytes_sent, duration_s);
    cost.port_cost += port_price(prices, duration_s);
    cost.energy_cost += prices.energy_price_per_joule * site_joules;
  }
  cost.cost_total = cost.gpu_cost + cost.egress_cost + cost.port_cost + cost.energy_cost;
  if (scenario.prices) {
    cost.currency = scenario.prices->currency;
    cost.as_of = scenario.prices->as_of;
    const auto& stated = scenario.prices->provenance;
    report.provenance.insert(report.provenance.end(), stated.begin(), stated.end());
    report.provenance.push_back(
        {"cost", Origin::computed,
         gpus_text(scenario) +
             " for the whole wall clock; egress of all bytes that a site sends, in monthly tiers; ports for "
             "whole months. Storage, interruptions of spot GPUs and staff are not included"});
  }
  if (scenario.power) {
    cost.energy_kwh = joules / kJoulesPerKwh;
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
