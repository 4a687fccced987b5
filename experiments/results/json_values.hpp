// The JSON of our plain structs, for those who put several into one document. Keys in a fixed order.
#pragma once
#include <string>
#include <vector>

#include "costmodel/inputs/scenario.hpp"
#include "costmodel/report/run_report.hpp"
#include "experiments/json/json.hpp"

namespace fomoe::scenario {

Json to_json(const costmodel::ModelShape& shape);
Json to_json(const std::vector<Provenance>& provenance);
/// The scenario after defaults and overrides; SI units, with the unit in the key.
Json to_json(const costmodel::Scenario& scenario);
Json to_json(const costmodel::RunReport& report);

}  // namespace fomoe::scenario
