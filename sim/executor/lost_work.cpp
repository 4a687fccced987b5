#include "sim/executor/lost_work.hpp"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "platforms/support/input_error.hpp"

namespace fomoe::sim {

namespace {

constexpr int kMostSearches = 24;
constexpr double kCloseEnough = 1e-3;  // a run that trains this share too much is not searched any further
constexpr double kLeastShare = 0.01;   // of what more steps train, if all were trained

/// Steps whose sequences were trained, as a number of whole optimiser steps.
double trained_steps(const SimulatedRun& run) {
  return static_cast<double>(run.plan.steps) * run.report.attendance->trained_share;
}

}  // namespace

SimulatedRun with_lost_work(const costmodel::Scenario& scenario, SimulatedRun run,
                            const std::function<SimulatedRun(const costmodel::Scenario&)>& simulate) {
  if (!run.report.attendance) return run;
  const auto asked = static_cast<double>(run.plan.steps);
  const std::int64_t rounds = run.plan.rounds;
  const std::int64_t step_tokens = scenario.workload.global_batch_sequences * scenario.model.sequence_length;
  const auto enough = [&](const SimulatedRun& one) { return trained_steps(one) >= asked * (1 - 1e-9); };
  if (enough(run)) return run;

  // `few` steps train too little. The share of further steps that is trained follows from the last two runs.
  std::int64_t few = run.plan.steps, many = 0;
  double trained = trained_steps(run), share = 1;
  SimulatedRun longest;
  for (int runs = 1; runs < kMostSearches; ++runs) {
    if (many > 0 && (many - few <= 1 || trained_steps(longest) <= asked * (1 + kCloseEnough))) break;
    std::int64_t next = few + static_cast<std::int64_t>(std::ceil((asked - trained) / share * (1 - 1e-12)));
    if (many > 0) next = std::clamp(next, few + 1, many - 1);
    costmodel::Scenario longer = scenario;
    longer.workload.tokens = std::max(next, few + 1) * step_tokens;
    SimulatedRun one = simulate(longer);
    const double now = trained_steps(one);
    if (enough(one)) {
      many = one.plan.steps;
      longest = std::move(one);
      continue;
    }
    share = std::clamp((now - trained) / static_cast<double>(one.plan.steps - few), kLeastShare, 1.0);
    few = one.plan.steps;
    trained = now;
  }
  if (many == 0)
    throw InputError(scenario.strategy.quorum ? "strategy.quorum" : "failures.outages",
                     "sites that are absent from nearly all rounds",
                     "outages and a quorum with which all tokens can be trained", "policy = \"wait\"");
  const std::int64_t added = longest.plan.rounds - rounds;
  longest.report.attendance->added_rounds = added;
  longest.report.notes.push_back("absent sites lost work: " + std::to_string(added) +
                                 (added == 1 ? " round" : " rounds") + " more than the " +
                                 std::to_string(rounds) +
                                 " without absences train as many tokens as the scenario has");
  return longest;
}

}  // namespace fomoe::sim
