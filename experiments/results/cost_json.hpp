// Writes as JSON the traffic, prices, energy and quality settings of scenarios, and the cost and quality of
// reports.
#pragma once
#include "costmodel/inputs/scenario.hpp"
#include "costmodel/report/run_report.hpp"
#include "experiments/results/json_values.hpp"

namespace fomoe::scenario {

/// Adds the settings that the scenario states.
void add_cost_and_quality(Json& json, const costmodel::Scenario& scenario);
/// Adds the values that the report has.
void add_cost_and_quality(Json& json, const costmodel::RunReport& report);

/// What published runs say of a loss, in points of 1 %.
Json loss_json(const costmodel::LossEstimate& estimate);

}  // namespace fomoe::scenario
