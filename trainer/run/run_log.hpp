// The output of a run while it is under way: a progress line for people, and a line of JSON for each event.
#pragma once
#include <cstdint>
#include <functional>
#include <iosfwd>
#include <string>

#include "costmodel/inputs/scenario.hpp"
#include "costmodel/plan/plan.hpp"
#include "platforms/support/descriptor.hpp"
#include "trainer/execution/executor.hpp"

namespace fomoe::trainer {

/// The log file of a rank: the given path at rank 0, and with ".rank-r" before the extension at rank r.
std::string path_of_rank(const std::string& path, int rank);

/// Writes one JSON object per line, and each line at once. There are three kinds of lines. A step:
///   {"kind": "step", "site", "round", "step", "loss", "gradient_norm", "update_norm", "learning_rate",
///    "tokens", "step_s", "routing": [{"entropy", "load_cv", "ghost_share"} by layer], "skipped"}
/// gradient_norm is the norm of the site's gradients before clipping, and update_norm that of the change of
/// its parameters; step_s is the time of the step on its device (stopwatch.hpp); skipped is there, and true,
/// if the optimiser left out the step because its gradients were not finite. The figures of the routers are
/// those of router_figures.hpp. An outer step:
///   {"kind": "outer_step", "site", "round", "difference_norm", "update_norm"}
/// difference_norm is the norm of the averaged pseudo-gradient, and update_norm that of the change which the
/// outer optimiser makes of it. Both cover what the step updates, which may be a part of the model. A
/// transfer, written when an operation has waited for it:
///   {"kind": "transfer", "site", "round", "operation", "start_s", "transfer_s", "exposed_s"}
/// transfer_s is the time from waiting for the first byte to the last byte sent and received; exposed_s is
/// the part of it in which the site did not compute. A validation:
///   {"kind": "validation", "site", "round", "loss", "perplexity", "sequences"}
///
/// A number that was not measured, or that is not finite, as in a step that was skipped, is null.
///
/// On a full disk, lines wait in memory until there is room again.
class RunLog {
 public:
  /// If `path` is empty, nothing is written. An existing file is replaced by the first line of a new run,
  /// unless the run continues_after() some rounds. `warnings` gets a line if the file cannot be written.
  RunLog(const std::string& path, std::ostream& warnings);
  /// The run goes on in the file of an earlier one. What that one did after these rounds is done again, so
  /// its lines are dropped.
  void continues_after(std::int64_t rounds);
  void step(const StepRecord& record, const std::string& site, const ExpertChoice& held);
  void outer_step(const OuterRecord& record, const std::string& site);
  void transfer(const TransferRecord& record, const std::string& site);
  void validation(const std::string& site, std::int64_t round, double loss, std::int64_t sequences);
  /// Writes the lines to the file.
  void flush();
  /// What is wrong with the file if lines are still waiting; else empty.
  [[nodiscard]] const std::string& problem() const { return problem_; }

 private:
  void add(const std::string& line);
  std::string path_;
  std::ostream& warnings_;
  Descriptor file_;
  bool started_ = false;  // the lines of an earlier run are gone
  std::string waiting_;   // lines that are not yet in the file
  std::string problem_;
  std::int64_t lost_ = 0;  // lines that there was no room for in memory either
};

/// "round 3/10 · step 96/320 · loss 4.321 · 1.23e+04 tokens/s · MFU 31.2 % · exposed 12.1 % · ETA 61 s".
/// On a terminal, the line is overwritten each time; otherwise a new line appears at intervals. MFU (model
/// FLOP utilisation) is shown if the scenario gives the peak rate of the device. tokens/s counts all sites
/// together, extrapolated from this process.
/// `exposed_s` returns the seconds since the start in which the process's first site waited for transfers; it
/// is called when a line is printed.
class TrainingProgress {
 public:
  TrainingProgress(std::ostream& out, bool terminal, const costmodel::Scenario& scenario,
                   const costmodel::Plan& plan, std::int64_t first_round, std::function<double()> exposed_s);
  void step(const StepRecord& record);
  void round(std::int64_t done) { rounds_done_ = done; }
  void end();

 private:
  void print(double elapsed_s);
  std::ostream& out_;
  bool terminal_;
  const costmodel::Scenario& scenario_;
  const costmodel::Plan& plan_;
  std::int64_t first_round_, rounds_done_, steps_ = 0, first_step_ = -1;
  std::function<double()> exposed_s_;
  at::Tensor loss_;           // of the last step, on the device
  std::int64_t skipped_ = 0;  // steps that the optimiser left out
  double started_s_, printed_s_ = 0;
};

}  // namespace fomoe::trainer
