// `--within cost=5000,time=3d,…`: what a plan must keep.
#pragma once
#include <string>

#include "costmodel/inputs/scenario.hpp"
#include "experiments/planner/candidate.hpp"

namespace fomoe::commands {

/// Throws UsageError for what cannot be read, and where the scenario cannot answer: a cost without prices,
/// an energy without power, a perplexity without a quality model.
planner::Limits read_limits(const std::string& text, const costmodel::Scenario& scenario);

planner::Measure read_measure(const std::string& word, const costmodel::Scenario& scenario);

/// "120.5 USD", "3 d 4 h", "12 kWh".
std::string amount_text(planner::Measure measure, double amount, const costmodel::Scenario& scenario);

}  // namespace fomoe::commands
