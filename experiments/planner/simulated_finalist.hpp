// A candidate by both engines, in a process of its own: SimGrid knows one engine per process.
#pragma once
#include "costmodel/inputs/scenario.hpp"
#include "experiments/planner/answer.hpp"
#include "platforms/support/child.hpp"
#include "sim/executor/simulated_run.hpp"

namespace fomoe::planner {

class FinalistSimulation {
 public:
  /// Starts at once.
  FinalistSimulation(const costmodel::Scenario& scenario, const sim::RunOptions& options);
  /// Waits, and fills in what both engines say, or `problem`.
  void finish(Finalist& finalist, const ScreeningOptions& options);

 private:
  sim::Child child_;
};

}  // namespace fomoe::planner
