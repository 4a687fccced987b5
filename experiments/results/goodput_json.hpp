// Writes as JSON the failures of scenarios, and the goodput and replicas of reports. Settings that the
// scenario does not state are left out.
#pragma once
#include "costmodel/inputs/scenario.hpp"
#include "costmodel/report/run_report.hpp"
#include "experiments/results/json_values.hpp"

namespace fomoe::scenario {

void add_failures(Json& json, const costmodel::Scenario& scenario);
/// Which sites took part in the rounds.
void add_attendance(Json& json, const costmodel::RunReport& report);
void add_goodput(Json& json, const costmodel::RunReport& report);
void add_replicas(Json& json, const costmodel::RunReport& report);

}  // namespace fomoe::scenario
