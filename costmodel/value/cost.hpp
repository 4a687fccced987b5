// Cost formulas of duration and bytes, for one scenario or a block of scenarios.
#pragma once
#include "costmodel/inputs/prices.hpp"
#include "costmodel/inputs/scenario.hpp"
#include "costmodel/math/lanes.hpp"
#include "costmodel/report/run_report.hpp"

namespace fomoe::costmodel {

/// Price of `bytes` sent within one month: the sum over the tiers of price · bytes in the tier.
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

/// Price of `bytes` sent evenly over `duration_s`. The tiers start anew every month, and the run starts at
/// the beginning of a month: ⌊months⌋ · price(bytes ÷ months) + price(bytes of the incomplete last month).
template <class V>
V egress_price(const std::vector<EgressTier>& tiers, const V& bytes, const V& duration_s) {
  const V months = duration_s / kMonthSeconds;
  const V whole = -ceil_of(V(-months));
  const V of_whole_month = bytes / max_of(months, constant<V>(1));
  return whole * egress_price_of_month(tiers, of_whole_month) +
         egress_price_of_month(tiers, max_of(V(bytes - whole * of_whole_month), constant<V>(0)));
}

/// GPUs cost the same whether they compute or wait.
template <class V>
V gpu_price(const SitePrices& prices, const V& gpus, const V& duration_s) {
  return gpus * duration_s * prices.gpu_price_per_s;
}

/// A port is billed by the month; every month begun counts.
template <class V>
V port_price(const SitePrices& prices, const V& duration_s) {
  return prices.port_price_per_month * ceil_of(V(duration_s / kMonthSeconds));
}

/// Total price of one site.
template <class V>
V site_price(const SitePrices& prices, const V& gpus, const V& sent_bytes, const V& duration_s,
             const V& joules) {
  return gpu_price(prices, gpus, duration_s) + egress_price(prices.egress, sent_bytes, duration_s) +
         port_price(prices, duration_s) + prices.energy_price_per_joule * joules;
}

/// GPUs of all sites that the method uses. They are billed and draw power, whether they compute or wait.
int all_gpus(const Scenario& scenario);

/// Sets report.cost if the scenario has prices or power, from the report's wall clock and its sites' bytes
/// and compute times, and adds the provenance of both.
void add_cost(RunReport& report, const Scenario& scenario);

}  // namespace fomoe::costmodel
