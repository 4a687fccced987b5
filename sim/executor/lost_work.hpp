// A run in which absent sites lose work is longer: it ends when all of the scenario's tokens are trained.
#pragma once
#include <functional>

#include "sim/executor/simulated_run.hpp"

namespace fomoe::sim {

/// Given the simulation of a scenario, returns that of the least number of steps with which as many tokens
/// are trained as the scenario has, or a little more. `simulate` simulates the same scenario with more
/// tokens. Later steps may lose work as well. Returns `run` itself if nothing was lost.
SimulatedRun with_lost_work(const costmodel::Scenario& scenario, SimulatedRun run,
                            const std::function<SimulatedRun(const costmodel::Scenario&)>& simulate);

}  // namespace fomoe::sim
