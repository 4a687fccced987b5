// Writes reports like those of measured runs, but with simulated times, for tests of commands that read
// measured runs and need to know the true terms.
#pragma once
#include <string>
#include <vector>

#include "experiments/results/run_record.hpp"
#include "sim/executor/simulated_run.hpp"
#include "tests/experiments/run_fomoe.hpp"

namespace fomoe::tests {

/// Writes a report to `path`. The report has the scenario with `overrides`; the run was simulated with the
/// terms `truth` in addition. `noise` is the relative error added to the communication time, for example
/// 0.01.
inline void write_measured_run(const std::string& path, const std::string& scenario_path,
                               const std::vector<std::string>& overrides,
                               const std::vector<std::string>& truth, double noise = 0) {
  scenario::ReadOptions options;
  options.overrides = overrides;
  scenario::RunRecord record = scenario::new_run_record();
  record.source = scenario::scenario_source(scenario_path, options);
  const costmodel::Scenario scenario = scenario::read_scenario(scenario_path, options);
  options.overrides.insert(options.overrides.end(), truth.begin(), truth.end());
  sim::RunOptions all;
  all.all_rounds = true;
  costmodel::RunReport report =
      sim::simulate_scenario(scenario::read_scenario(scenario_path, options), all).report;
  report.round.communication_s *= 1 + noise;
  report.executor = "measured";
  write_all(path, scenario::run_report_json(report, scenario, record));
}

}  // namespace fomoe::tests
