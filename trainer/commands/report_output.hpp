// Where the report of a run goes: to --output, and beside the checkpoints.
#pragma once
#include <string>

#include "experiments/results/run_record.hpp"
#include "trainer/run/training_run.hpp"

namespace fomoe::trainer {

/// Writes the report to `output`, or prints a summary if it is empty, and keeps the report beside the
/// checkpoints if there are any. Throws std::runtime_error if `output` cannot be written, and says where the
/// report is.
void write_report(const std::string& output, const RunRequest& request, const TrainingResult& result,
                  scenario::RunRecord record);

/// Writes the report of a run that had ended before this process was started.
void write_report_again(const std::string& output, const RunRequest& request);

}  // namespace fomoe::trainer
