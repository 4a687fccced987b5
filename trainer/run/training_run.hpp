// A whole training: from a scenario to a RunReport, alone or as one of several processes.
#pragma once
#include <iosfwd>
#include <optional>
#include <string>

#include "costmodel/inputs/scenario.hpp"
#include "costmodel/report/run_report.hpp"
#include "experiments/scenario/trainer_section.hpp"
#include "trainer/comm/rendezvous.hpp"

namespace fomoe::trainer {

struct RunRequest {
  costmodel::Scenario scenario;
  scenario::TrainerSettings settings;
  std::optional<Launch> launch;  // absent: this process trains all sites in turn
  std::string checkpoints;       // directory; empty: none
  bool resume = false;
  std::string log;  // JSON lines; empty: none. Other ranks than 0 add ".site-NAME" before the extension.
  std::string routing_counts;  // CSV file; empty: none
  bool paced = false;          // compute operations sleep; see TrainingOptions
  int threads = 0;             // 0: what LibTorch takes
};

struct TrainingResult {
  costmodel::RunReport report;
  std::int64_t first_round = 0;  // that the report is of; above 0 where the run was resumed
  std::string round_timeline;    // JSON of one round, as `fomoe simulate` writes it; empty: none
};

/// Trains. → the report, at rank 0 (or in turn); nothing at the other ranks. Messages and progress go to
/// `progress`. Throws UsageError, InputError, FileError (the user's mistakes) and SiteLost.
std::optional<TrainingResult> train(const RunRequest& request, std::ostream& progress, bool terminal);

}  // namespace fomoe::trainer
