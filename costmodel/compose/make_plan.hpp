// From a scenario to what all executors run: its method's plan, composed with how sums are carried out
// (methods/composition.hpp), with the traffic that is beside the synchronisation (extra_traffic.hpp).
#pragma once
#include "costmodel/inputs/scenario.hpp"
#include "costmodel/plan/plan.hpp"
#include "costmodel/plan/plan_summary.hpp"

namespace fomoe::costmodel {

Plan make_plan(const Scenario& scenario);

/// The mean round of the scenario's plan, by its method's formula.
PlanSummary summarise(const Scenario& scenario);

}  // namespace fomoe::costmodel
