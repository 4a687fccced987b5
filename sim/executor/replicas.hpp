// The same scenario with several seeds, each in a process of its own.
#pragma once
#include <cstdint>
#include <functional>

#include "costmodel/inputs/scenario.hpp"
#include "costmodel/report/run_report.hpp"

namespace fomoe::sim {

using Simulate = std::function<costmodel::RunReport(const costmodel::Scenario&)>;

/// Fills in report.replicas: the scenario's seed (whose report this is) and the count − 1 seeds after it, as
/// many at a time as the machine has cores. Throws std::runtime_error where one fails.
void add_replicas(costmodel::RunReport& report, const costmodel::Scenario& scenario, const Simulate& simulate,
                  std::int64_t count);

}  // namespace fomoe::sim
