// Within which ranges predictions were held against real runs (experiments/validation), and how far a
// scenario lies outside of them.
#pragma once
#include <string>
#include <vector>

#include "costmodel/inputs/scenario.hpp"
#include "costmodel/report/run_report.hpp"

namespace fomoe::commands {

/// "latency 126 ms: 1.3 times the most that was tried (5 ms to 100 ms)", one for each quantity that lies
/// outside; empty: the scenario lies inside. Of quantities that differ between sites, the smallest and
/// largest.
std::vector<std::string> outside_of_validation(const costmodel::RunReport& report,
                                               const costmodel::Scenario& scenario);

/// For people, one or more lines: inside, or what lies outside.
std::string validation_range_text(const costmodel::RunReport& report, const costmodel::Scenario& scenario);

}  // namespace fomoe::commands
