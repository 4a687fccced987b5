// Measured runs and what is predicted for them: shared by validate and calibrate.
#pragma once
#include <boost/program_options.hpp>
#include <string>
#include <vector>

#include "costmodel/inputs/scenario.hpp"
#include "costmodel/report/run_report.hpp"
#include "experiments/results/run_record.hpp"

namespace fomoe::commands {

struct ReadRun {
  scenario::MeasuredRun measured;
  costmodel::Scenario scenario;
};

/// In the given order. A run that was given twice is refused: it would count twice. `overrides` come on top
/// of every run's scenario.
std::vector<ReadRun> read_runs(const std::vector<std::string>& paths,
                               const std::vector<std::string>& overrides = {});

/// --set, where only keys of network_model may be overridden: all else is what was run.
std::vector<std::string> network_overrides(const boost::program_options::variables_map& values);

/// Simulated, every round of it: the first ones count in runs that are short.
costmodel::RunReport predict(const costmodel::Scenario& scenario);

}  // namespace fomoe::commands
