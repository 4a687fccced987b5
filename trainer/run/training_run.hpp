// A whole training run, from a scenario to a RunReport, by one process or by several.
#pragma once
#include <functional>
#include <iosfwd>
#include <optional>
#include <string>

#include "costmodel/inputs/scenario.hpp"
#include "costmodel/report/run_report.hpp"
#include "experiments/results/run_record.hpp"
#include "experiments/scenario/trainer_section.hpp"
#include "trainer/execution/executor.hpp"
#include "trainer/rendezvous/rendezvous.hpp"

namespace fomoe::trainer {

struct RunRequest {
  costmodel::Scenario scenario;
  scenario::TrainerSettings settings;
  std::optional<Launch> launch;  // absent: this process trains all sites in turn
  std::string checkpoints;       // directory; empty: no checkpoints
  bool resume = false;
  std::string
      start_from;  // directory of another run's checkpoints, which may have had other sites; empty: none
  // file for JSON lines; empty: none. Rank r > 0 adds ".rank-r" before the extension.
  std::string log;
  std::string store;           // shared folder for a store's objects; empty: none, or all sites train in turn
  std::string routing_counts;  // CSV file; empty: none
  bool paced = false;          // compute operations sleep; see TrainingOptions
  int threads = 0;             // 0: LibTorch's default
  double stop_within_s = 0;    // with checkpoints: see Stopping; 0: SIGTERM ends the process
  std::function<void()> all_present = [] {};  // called when all sites are there and training begins
};

/// The settings of the executor, with the device on which this process trains. Throws UsageError if the
/// device or CUDA graphs are asked for and cannot be had.
TrainingOptions training_options(const RunRequest& request);

struct TrainingResult {
  costmodel::RunReport report;
  std::int64_t first_round = 0;  // first round of the report; above 0 if the run was resumed
  std::string round_timeline;    // JSON of one round, as `fomoe simulate` writes it; empty: none
  std::string validation;        // JSON, see validation_json(); empty: no validation
  int threads = 0;               // CPU threads of this process
  double waited_share = 0;       // share of the time in which they wanted a core and had none
  scenario::SeenConnections connections = {};  // of the first process, unless all sites train in turn
  std::optional<scenario::WholeRun> all = std::nullopt;  // see scenario::RunRecord
  std::string log_problem = {};                          // why lines of the log are missing; empty: none are
};

/// Runs the training. Returns the report at rank 0 or in turn, and nothing at other ranks. Messages and
/// progress go to `progress`. Throws UsageError, InputError and FileError for mistakes of the user, and
/// SiteLost. Throws Stopped if SIGTERM has stopped it.
std::optional<TrainingResult> train(const RunRequest& request, std::ostream& progress, bool terminal);

}  // namespace fomoe::trainer
