// Simulated runs of a scenario for the tests of the executor, and their comparison with the closed form.
#pragma once
#include <doctest/doctest.h>

#include <cmath>

#include "costmodel/formula/closed_form.hpp"
#include "sim/executor/simulated_run.hpp"

namespace fomoe::tests {

inline costmodel::RunReport simulated(const costmodel::Scenario& scenario,
                                      const sim::RunOptions& options = {}) {
  return sim::simulate_scenario(scenario, options).report;
}

/// Executes each round, also where a few stand for all.
inline costmodel::RunReport simulated_wholly(const costmodel::Scenario& scenario) {
  return simulated(scenario, {.rounds = {}, .all_rounds = true});
}

inline void check_close(double value, double expected, double tolerance) {
  CHECK(std::abs(value - expected) <= tolerance * std::abs(expected));
}

/// Compares the simulated report with the closed form. The stages of a pipeline do different work, so that a
/// site may compute while others send. With `symmetric` false, only the totals are therefore compared.
inline void check_equal_reports(const costmodel::Scenario& scenario, bool symmetric = true) {
  const costmodel::RunReport formula = costmodel::closed_form(scenario), report = simulated(scenario);
  check_close(report.wall_clock_s, formula.wall_clock_s, 1e-9);
  check_close(report.compute_utilization, formula.compute_utilization, 1e-9);
  check_close(report.bytes_per_token, formula.bytes_per_token, 1e-12);
  check_close(report.bytes_sent_per_site_per_round, formula.bytes_sent_per_site_per_round, 1e-12);
  if (!symmetric) return;
  check_close(report.round.communication_s, formula.round.communication_s, 1e-9);
  check_close(report.round.exposed_communication_s, formula.round.exposed_communication_s, 1e-9);
}

}  // namespace fomoe::tests
