// A report like that of a measured run, whose times are simulated: for tests of what is done with measured
// runs, where the truth must be known.
#pragma once
#include <string>
#include <vector>

#include "experiments/results/run_record.hpp"
#include "sim/executor/simulated_run.hpp"
#include "tests/experiments/run_fomoe.hpp"

namespace fomoe::tests {

/// `overrides` make the scenario that the report carries; `truth` are terms that the run had besides.
/// `noise`: communication is measured to take so much longer, as a share.
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
