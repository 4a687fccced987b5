// Money: formulas of duration and bytes, for one scenario or a block of them.
#pragma once
#include "costmodel/inputs/prices.hpp"
#include "costmodel/inputs/scenario.hpp"
#include "costmodel/math/lanes.hpp"
#include "costmodel/report/run_report.hpp"

namespace fomoe::costmodel {

/// Of `bytes` within one month: Σ_tiers price · (what of the bytes falls into the tier).
template <class V>
V egress_price_of_month(const std::vector<EgressTier>& tiers, const V& bytes) {
  V sum = constant<V>(0);
  double from_bytes = 0;
  for (std::size_t i = 0; i < tiers.size(); ++i) {
    V in_tier = max_of(V(bytes - from_bytes), constant<V>(0));
    if (i + 1 < tiers.size()) in_tier = min_of(in_tier, constant<V>(tiers[i].up_to_bytes - from_bytes));
    sum = sum + in_tier * tiers[i].price_per_byte;
    from_bytes = tiers[i].up_to_bytes;
  }
  return sum;
}

/// Tiers start anew every month. The run starts with one, and sends evenly:
/// ⌊months⌋ · price(bytes ÷ months) + price(what is left for the month that is cut short).
template <class V>
V egress_price(const std::vector<EgressTier>& tiers, const V& bytes, const V& duration_s) {
  const V months = duration_s / kMonthSeconds;
  const V whole = -ceil_of(V(-months));
  const V of_whole_month = bytes / max_of(months, constant<V>(1));
  return whole * egress_price_of_month(tiers, of_whole_month) +
         egress_price_of_month(tiers, max_of(V(bytes - whole * of_whole_month), constant<V>(0)));
}

/// A GPU is paid for while it waits.
template <class V>
V gpu_price(const SitePrices& prices, const V& gpus, const V& duration_s) {
  return gpus * duration_s * prices.gpu_price_per_s;
}

/// A port is paid for by the month, and every month begun counts.
template <class V>
V port_price(const SitePrices& prices, const V& duration_s) {
  return prices.port_price_per_month * ceil_of(V(duration_s / kMonthSeconds));
}

/// Of one site.
template <class V>
V site_price(const SitePrices& prices, const V& gpus, const V& sent_bytes, const V& duration_s,
             const V& joules) {
  return gpu_price(prices, gpus, duration_s) + egress_price(prices.egress, sent_bytes, duration_s) +
         port_price(prices, duration_s) + prices.energy_price_per_joule * joules;
}

/// GPUs that a site pays for and that draw power.
int paid_gpus_per_site(const Scenario& scenario);

/// Fills in report.cost where the scenario has prices or power, from the report's wall clock and its sites'
/// bytes and compute times; and the provenance of both.
void add_cost(RunReport& report, const Scenario& scenario);

}  // namespace fomoe::costmodel
