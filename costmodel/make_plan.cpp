#include "costmodel/make_plan.hpp"

#include "costmodel/extra_traffic.hpp"
#include "costmodel/methods/composition.hpp"

namespace fomoe::costmodel {

Plan make_plan(const Scenario& scenario) { return with_extra_traffic(scenario, composed_plan(scenario)); }

}  // namespace fomoe::costmodel
