// Parts of sentences of `fomoe plan`.
#pragma once
#include <string>

#include "experiments/output/planner_text.hpp"

namespace fomoe::commands {

extern const char* const kRisks;

/// "12 % more than", "3.2 times as much as".
std::string ratio_text(double ratio);
/// Settings that only some methods have: the placement, fragments, and the axes of --vary.
std::string details(const PlannerAnswer& plan, const planner::Finalist& finalist);
/// For an answer of published runs: on what the choice rests, and how sure it is.
std::string by_published_runs(const planner::Answer& answer);

}  // namespace fomoe::commands
