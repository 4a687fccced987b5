// From a scenario to what all executors run: its method's plan, composed with how sums are carried out
// (methods/composition.hpp), with the traffic that is beside the synchronisation (extra_traffic.hpp).
#pragma once
#include "costmodel/plan.hpp"
#include "costmodel/scenario.hpp"

namespace fomoe::costmodel {

Plan make_plan(const Scenario& scenario);

}  // namespace fomoe::costmodel
