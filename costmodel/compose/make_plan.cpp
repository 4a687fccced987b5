#include "costmodel/compose/make_plan.hpp"

#include <algorithm>

#include "costmodel/compose/composition.hpp"
#include "costmodel/compose/extra_traffic.hpp"
#include "costmodel/model/summary_inputs.hpp"
#include "costmodel/plan/method.hpp"
#include "costmodel/plan/site_shares.hpp"

namespace fomoe::costmodel {

Plan make_plan(const Scenario& scenario) { return with_extra_traffic(scenario, composed_plan(scenario)); }

PlanSummary summarise(const Scenario& scenario, const Axes& axes, const Fixed& fixed,
                      const std::optional<OwnPaces>& paces) {
  PlanSummary summary = summarise(*scenario.strategy.method, axes, fixed);
  add_extra_traffic(summary, scenario, axes, fixed);
  if (paces) {  // the method's formula has one cycle of each site in each round
    const double cycles = remote_cycles(*paces) / (std::max(1.0, axes.sites - 1.0) * summary.rounds);
    summary.sent.dense *= cycles;
    summary.sent.expert_sync *= cycles;
  }
  return summary;
}

PlanSummary summarise(const Scenario& scenario) {
  return summarise(scenario, axes_of(scenario), fixed_of(scenario),
                   own_paces_of(scenario, counts_of(scenario)));
}

}  // namespace fomoe::costmodel
