// Plans as JSON, schema "fomoe.plan/1", described in experiments/plans/README.md: so that a method can be
// tried, or looked at, without C++.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "costmodel/plan/plan.hpp"

namespace fomoe::scenario {

/// `executed[c]`: the rounds of class c whose operations are written. Rounds that are equal are written once.
std::string plan_json(const costmodel::Plan& plan, const std::vector<std::vector<std::int64_t>>& executed);

/// Throws FileError. Rounds that were not written cannot be asked of it: where a class is identical, its last
/// written round stands for all others, else RoundClass::known says how many there are.
costmodel::Plan read_plan(const std::string& path, int sites);

}  // namespace fomoe::scenario
