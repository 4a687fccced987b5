// Traffic, prices, energy and quality of scenarios, cost and quality of reports, as JSON.
#pragma once
#include "costmodel/inputs/scenario.hpp"
#include "costmodel/report/run_report.hpp"
#include "experiments/results/json_values.hpp"

namespace fomoe::scenario {

/// What the scenario states of them; what it does not is left out.
void add_cost_and_quality(Json& json, const costmodel::Scenario& scenario);
/// What the report knows of them.
void add_cost_and_quality(Json& json, const costmodel::RunReport& report);

}  // namespace fomoe::scenario
