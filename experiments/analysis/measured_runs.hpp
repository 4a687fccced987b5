// Measured runs and their predictions, for `fomoe validate` and `fomoe calibrate`.
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

/// Reads the runs in the given order. `overrides` are applied to the scenario of every run. Throws if the
/// same run is given twice, because its errors would then have twice the weight. Unless `in_turn`, throws for
/// a run whose sites worked one after the other.
std::vector<ReadRun> read_runs(const std::vector<std::string>& paths,
                               const std::vector<std::string>& overrides = {}, bool in_turn = false);

/// The overrides of --set. Only keys of network_model are allowed, because all other keys describe the run
/// that was measured.
std::vector<std::string> network_overrides(const boost::program_options::variables_map& values);

/// Simulates every round of the scenario, because the first rounds differ from later ones and matter in short
/// runs.
costmodel::RunReport predict(const costmodel::Scenario& scenario);
/// The same for a run. If the measured bytes are those of a run whose experts moved after its last round too,
/// as they did until commit bc93ead574, so do those of the prediction.
costmodel::RunReport predict(const ReadRun& run);

}  // namespace fomoe::commands
