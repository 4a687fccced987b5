// Replicas: simulates the same scenario with several seeds, each in its own process, to measure the spread of
// the results.
#pragma once
#include <cstdint>
#include <functional>

#include "costmodel/inputs/scenario.hpp"
#include "costmodel/report/run_report.hpp"

namespace fomoe::sim {

using Simulate = std::function<costmodel::RunReport(const costmodel::Scenario&)>;

/// Fills in report.replicas from `report`, which must be the report of the scenario's seed, and from
/// simulations of the next count − 1 seeds. Runs as many processes at a time as the machine has cores. Throws
/// std::runtime_error if a simulation fails.
void add_replicas(costmodel::RunReport& report, const costmodel::Scenario& scenario, const Simulate& simulate,
                  std::int64_t count);

}  // namespace fomoe::sim
