// Cost formulas of duration and bytes.
#pragma once
#include "costmodel/inputs/prices.hpp"
#include "costmodel/inputs/scenario.hpp"
#include "costmodel/report/run_report.hpp"

namespace fomoe::costmodel {

/// Price of `bytes` sent within one month: the sum over the tiers of price · bytes in the tier.
double egress_price_of_month(const std::vector<EgressTier>& tiers, double bytes);

/// Price of `bytes` sent evenly over `duration_s`. The tiers start anew every month, and the run starts at
/// the beginning of a month: ⌊months⌋ · price(bytes ÷ months) + price(bytes of the incomplete last month).
double egress_price(const std::vector<EgressTier>& tiers, double bytes, double duration_s);

/// GPUs cost the same whether they compute or wait.
inline double gpu_price(const SitePrices& prices, double gpus, double duration_s) {
  return gpus * duration_s * prices.gpu_price_per_s;
}

/// A port is billed by the month; every month begun counts.
inline double port_price(const SitePrices& prices, double duration_s) {
  return prices.port_price_per_month * std::ceil(duration_s / kMonthSeconds);
}

/// Total price of one site.
inline double site_price(const SitePrices& prices, double gpus, double sent_bytes, double duration_s,
                         double joules) {
  return gpu_price(prices, gpus, duration_s) + egress_price(prices.egress, sent_bytes, duration_s) +
         port_price(prices, duration_s) + prices.energy_price_per_joule * joules;
}

/// GPUs of all sites that the method uses. They are billed and draw power, whether they compute or wait.
int all_gpus(const Scenario& scenario);

/// Sets report.cost if the scenario has prices or power, from the report's wall clock and its sites' bytes
/// and compute times, and adds the provenance of both.
void add_cost(RunReport& report, const Scenario& scenario);

}  // namespace fomoe::costmodel
