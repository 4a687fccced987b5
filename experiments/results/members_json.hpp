// The members of a scenario that rows of keys name, as JSON.
#pragma once
#include <initializer_list>
#include <string_view>

#include "costmodel/inputs/scenario.hpp"
#include "experiments/json/json.hpp"

namespace fomoe::scenario {

/// The members of the keys of a table, in SI units, in the order of the keys; a member that the scenario does
/// not give has no key. The names in `always` come first, and are there even if they are not given: null, or
/// the 0 that stands for this.
Json members_json(std::string_view table, const costmodel::Scenario& scenario,
                  std::initializer_list<const char*> always = {});

}  // namespace fomoe::scenario
