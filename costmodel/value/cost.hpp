// Cost formulas of duration and bytes.
#pragma once
#include <cmath>
#include <optional>
#include <vector>

#include "costmodel/inputs/prices.hpp"
#include "costmodel/inputs/scenario.hpp"
#include "costmodel/plan/plan_summary.hpp"
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

/// The cost of the same run if it trains `factor` times the tokens: ports cost so much for each month begun,
/// and the rest grows with the tokens, also egress whose price depends on its amount. Infinite for an
/// infinite factor.
inline double cost_of_more_tokens(double cost, double ports_per_month, double duration_s, double factor) {
  if (ports_per_month == 0 || !std::isfinite(factor * duration_s)) return cost * factor;
  const auto ports = [&](double seconds) { return ports_per_month * std::ceil(seconds / kMonthSeconds); };
  return (cost - ports(duration_s)) * factor + ports(duration_s * factor);
}

/// Prices of a site's GPUs, egress, ports and energy, and the energy of its GPUs.
struct SiteCost {
  double gpus = 0, egress = 0, ports = 0, energy = 0, joules = 0;
  [[nodiscard]] double total() const { return gpus + egress + ports + energy; }
  SiteCost& operator+=(const SiteCost& other);
};
/// What a site sends in the run: all of its bytes, and those to each other site. Without `to`, every other
/// site gets as many.
struct SiteTraffic {
  double bytes = 0;
  std::vector<double> to = {};
};
/// What a site with this index costs that sends `sent` and computes for `busy_s` of `duration_s`. A
/// part is 0 if the scenario has no prices, or no power.
SiteCost site_cost(const Scenario& scenario, int site, double gpus, const SiteTraffic& sent,
                   double duration_s, double busy_s);

/// Whether what a site pays for egress depends on where it sends.
bool egress_by_destination(const std::optional<Prices>& prices);

/// What passes through a store in a whole run of `sites` sites.
inline StoreUse store_use(const PlanSummary& plan, double sites) {
  const double all = sites * plan.rounds;
  return {all * plan.uploaded_bytes(), all * plan.downloaded_bytes(), all * plan.store_requests()};
}

/// What the store costs.
inline double store_price(const StorePrices& prices, const StoreUse& use) {
  return prices.price_per_request * use.requests + prices.price_per_byte * use.bytes_sent;
}

/// GPUs of all sites that the method uses. They are billed and draw power, whether they compute or wait.
int all_gpus(const Scenario& scenario);

/// Sets report.cost if the scenario has prices or power, from the report's wall clock and its sites' bytes
/// and compute times, and adds the provenance of both.
void add_cost(RunReport& report, const Scenario& scenario);

}  // namespace fomoe::costmodel
