// Writes the project's plain structs as JSON values, for documents that combine several of them. The keys
// have a fixed order.
#pragma once
#include <string>
#include <vector>

#include "costmodel/inputs/scenario.hpp"
#include "costmodel/report/run_report.hpp"
#include "experiments/json/json.hpp"

namespace fomoe::scenario {

Json to_json(const costmodel::ModelShape& shape);
Json to_json(const std::vector<Provenance>& provenance);
/// The scenario after defaults and overrides, in SI units. The keys include the units.
Json to_json(const costmodel::Scenario& scenario);
Json to_json(const costmodel::RunReport& report);

}  // namespace fomoe::scenario
