// Measured runs and their predictions, for `fomoe validate` and `fomoe calibrate`.
#pragma once
#include <boost/program_options.hpp>
#include <string>
#include <vector>

#include "costmodel/inputs/scenario.hpp"
#include "costmodel/report/run_report.hpp"
#include "costmodel/report/validation.hpp"
#include "experiments/results/run_record.hpp"

namespace fomoe::commands {

struct ReadRun {
  scenario::MeasuredRun measured;
  costmodel::Scenario scenario;
};

/// Reads the runs in the given order. `overrides` are applied to the scenario of every run. Throws if the
/// same run is given twice, because its errors would then have twice the weight, and for runs whose sites
/// worked one after the other or that were started again, unless they are also read.
std::vector<ReadRun> read_runs(const std::vector<std::string>& paths,
                               const std::vector<std::string>& overrides = {},
                               const scenario::AlsoRead& also = {});

/// The overrides of --set. Only keys of network_model are allowed, because all other keys describe the run
/// that was measured.
std::vector<std::string> network_overrides(const boost::program_options::variables_map& values);

/// Simulates every round of the scenario, because the first rounds differ from later ones and matter in short
/// runs.
costmodel::RunReport predict(const costmodel::Scenario& scenario);
/// The same for a run. If the measured bytes are those of a run whose experts moved after its last round too,
/// as they did until commit bc93ead574, so do those of the prediction.
costmodel::RunReport predict(const ReadRun& run);

/// A run that was started again, because it lost sites: its rounds from each start of its processes to the
/// checkpoint from which the next start went on, with the sites that took part. Which rounds these were, who
/// was absent, and how long it took from each of these checkpoints until the rounds went on is what took
/// place; the times of the rounds are predicted.
struct PredictedParts {
  costmodel::RunReport last;  // the rounds since the last start, which the measured report has too
  double predicted_s = 0, measured_s = 0;  // rounds of all parts, without upkeep
  double lost_s = 0;                       // between the parts
};
PredictedParts predict_parts(const ReadRun& run);

/// The run's errors, where `predicted` becomes the prediction. Of a run that was started again, the wall
/// clock is that of all parts, and the other errors are those of the rounds since the last start, in both
/// reports.
costmodel::RunErrors errors_of(ReadRun& run, costmodel::RunReport& predicted);

}  // namespace fomoe::commands
