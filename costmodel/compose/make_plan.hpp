// The plan that all executors run for a scenario: the plan of its method, with the techniques of
// compose/composition.hpp and the traffic beside the synchronisation (extra_traffic.hpp).
#pragma once
#include <optional>

#include "costmodel/compute/own_pace.hpp"
#include "costmodel/inputs/scenario.hpp"
#include "costmodel/plan/plan.hpp"
#include "costmodel/plan/plan_summary.hpp"

namespace fomoe::costmodel {

Plan make_plan(const Scenario& scenario);

/// Summary of the mean round of the scenario's plan, by its method's formula.
PlanSummary summarise(const Scenario& scenario);
/// The same, with what axes_of() and fixed_of() return, and own_paces() if sites train at their own pace.
PlanSummary summarise(const Scenario& scenario, const Axes& axes, const Fixed& fixed,
                      const std::optional<OwnPaces>& paces);

}  // namespace fomoe::costmodel
