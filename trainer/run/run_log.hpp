// What a run says while it goes on: a progress line for people and a line of JSON for each optimiser step.
#pragma once
#include <fstream>
#include <functional>
#include <iosfwd>
#include <string>

#include "costmodel/inputs/scenario.hpp"
#include "costmodel/plan/plan.hpp"
#include "trainer/run/executor.hpp"

namespace fomoe::trainer {

/// One JSON object a line, each written whole. A step:
///   {"kind": "step", "site", "round", "step", "loss", "learning_rate", "tokens", "step_s",
///    "routing": [{"entropy", "load_cv", "ghost_share"} by layer]}
/// entropy of the experts' loads in nats (largest: log of their number), load_cv their standard deviation ÷
/// mean, ghost_share what went to experts that the site does not hold. A transfer, when it was waited for:
///   {"kind": "transfer", "site", "round", "operation", "start_s", "transfer_s", "exposed_s"}
/// from wanting the first byte to the last one sent and received; exposed while the site did not compute. A
/// validation:
///   {"kind": "validation", "site", "round", "loss", "perplexity", "sequences"}
class RunLog {
 public:
  /// "": nothing is written. Lines are added to a file that exists, so that a resumed run goes on in it.
  explicit RunLog(const std::string& path);
  void step(const StepRecord& record, const std::string& site, const ExpertChoice& held);
  void transfer(const TransferRecord& record, const std::string& site);
  void validation(const std::string& site, std::int64_t round, double loss, std::int64_t sequences);
  /// What is buffered becomes visible.
  void flush() { file_.flush(); }

 private:
  std::ofstream file_;
};

/// "round 3/10 · step 96/320 · loss 4.321 · 1.23e+04 tokens/s · MFU 31.2 % · exposed 12.1 % · ETA 61 s".
/// On a terminal one line that is overwritten, else a line now and then. MFU where the scenario says what the
/// device can do; tokens/s of all sites together, from this process's own pace.
/// `exposed_s`: seconds since the start in which the process's first site waited for transfers; asked when a
/// line is printed.
class Progress {
 public:
  Progress(std::ostream& out, bool terminal, const costmodel::Scenario& scenario, const costmodel::Plan& plan,
           std::int64_t first_round, std::function<double()> exposed_s);
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
  double loss_ = 0, started_s_, printed_s_ = 0;
};

}  // namespace fomoe::trainer
