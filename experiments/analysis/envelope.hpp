// The ranges of conditions in which predictions were compared with real runs (experiments/validation), and
// how far a scenario lies outside of these ranges.
#pragma once
#include <string>
#include <vector>

#include "costmodel/inputs/scenario.hpp"
#include "costmodel/report/run_report.hpp"

namespace fomoe::commands {

/// One text for each quantity that lies outside of its range, such as "latency 126 ms: 1.3 times the
/// maximum of the validated range (5 ms to 100 ms)". Empty if the scenario lies inside all ranges. For a
/// quantity that differs between sites, its smallest and largest value are checked.
std::vector<std::string> outside_of_validation(const costmodel::RunReport& report,
                                               const costmodel::Scenario& scenario);

/// Lines for people. They list the quantities that lie outside of their ranges, or state that the scenario
/// lies inside all ranges.
std::string validation_range_text(const costmodel::RunReport& report, const costmodel::Scenario& scenario);

}  // namespace fomoe::commands
