#include "costmodel/compose/make_plan.hpp"

#include "costmodel/compose/composition.hpp"
#include "costmodel/compose/extra_traffic.hpp"
#include "costmodel/model/summary_inputs.hpp"
#include "costmodel/plan/method.hpp"

namespace fomoe::costmodel {

Plan make_plan(const Scenario& scenario) { return with_extra_traffic(scenario, composed_plan(scenario)); }

PlanSummary summarise(const Scenario& scenario, const Axes& axes, const Fixed& fixed) {
  PlanSummary summary = summarise(*scenario.strategy.method, axes, fixed);
  add_extra_traffic(summary, axes, axes.expert_overlap / axes.sites, fixed, extra_traffic_of(scenario),
                    state_bytes_per_parameter(scenario));
  return summary;
}

PlanSummary summarise(const Scenario& scenario) {
  return summarise(scenario, axes_of(scenario), fixed_of(scenario));
}

}  // namespace fomoe::costmodel
