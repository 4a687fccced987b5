// Formats the result of `fomoe validate` as tables, CSV and JSON, and checks error limits.
#pragma once
#include <string>
#include <vector>

#include "costmodel/report/validation.hpp"
#include "experiments/analysis/measured_runs.hpp"

namespace fomoe::commands {

struct ValidatedRun {
  scenario::MeasuredRun measured;
  costmodel::Scenario scenario;
  costmodel::RunReport predicted;
  costmodel::RunErrors errors;
  costmodel::Bound bound;
};

struct ErrorLimit {
  costmodel::Compared what = costmodel::Compared::wall_clock;
  std::string statistic;  // "worst", "p95" or "median"
  double most = 0;
};

/// One line for each limit that the errors of all runs exceed.
std::vector<std::string> check_limits(const std::vector<ValidatedRun>& runs,
                                      const std::vector<ErrorLimit>& limits);

/// Each run's errors, then medians, 95th percentiles and worst cases over all runs, by what bounds the runs
/// and by method.
std::string validation_text(const std::vector<ValidatedRun>& runs);
/// One line per run. The column names include the units; errors are shares.
std::string validation_csv(const std::vector<ValidatedRun>& runs);
/// Schema "fomoe.validation/1".
std::string validation_json(const std::vector<ValidatedRun>& runs);

}  // namespace fomoe::commands
