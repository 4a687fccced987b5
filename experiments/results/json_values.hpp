// Writes the project's plain structs as JSON values, for documents that combine several of them, and run
// reports as whole JSON documents. The keys have a fixed order.
#pragma once
#include <cmath>
#include <initializer_list>
#include <string>
#include <string_view>
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
/// JSON has no infinity: null stands for a time that never ends or an event that never happens.
inline Json finite(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }
/// The members of the keys of a table, in SI units, in the order of the keys; a member that the scenario does
/// not give has no key. The names in `always` come first, and are there even if they are not given: null, or
/// the 0 that stands for this.
Json members_json(std::string_view table, const costmodel::Scenario& scenario,
                  std::initializer_list<const char*> always = {});
/// Adds to an answer the scenario that it is about ("scenario"), and where the numbers of that come from
/// ("provenance").
void add_inputs(Json& document, const costmodel::Scenario& scenario);

/// A run report as a document of the schema "fomoe.run/1"; the keys are the field names of RunReport. The
/// same report always gives the same bytes, and numbers keep all digits. If a scenario is given, it is added
/// under "scenario", resolved and in SI units.
std::string run_report_json(const costmodel::RunReport& report);
std::string run_report_json(const costmodel::RunReport& report, const costmodel::Scenario& scenario);

}  // namespace fomoe::scenario
