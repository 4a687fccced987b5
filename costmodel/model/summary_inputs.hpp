// Converts a scenario to the inputs of its method's formula.
#pragma once
#include "costmodel/inputs/scenario.hpp"
#include "costmodel/plan/plan_summary.hpp"

namespace fomoe::costmodel {

Axes axes_of(const Scenario& scenario);
Fixed fixed_of(const Scenario& scenario);

}  // namespace fomoe::costmodel
