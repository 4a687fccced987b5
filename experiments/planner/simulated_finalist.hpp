// Evaluates a candidate by both engines in a process of its own, because SimGrid allows one engine per
// process.
#pragma once
#include "costmodel/inputs/scenario.hpp"
#include "experiments/planner/answer.hpp"
#include "platforms/support/child.hpp"
#include "sim/executor/simulated_run.hpp"

namespace fomoe::planner {

class FinalistSimulation {
 public:
  /// Starts the process.
  FinalistSimulation(const costmodel::Scenario& scenario, const sim::RunOptions& options);
  /// Waits for the process, then fills in the results of both engines, or `problem`.
  void finish(Finalist& finalist, const ScreeningOptions& options);

 private:
  Child child_;
};

}  // namespace fomoe::planner
