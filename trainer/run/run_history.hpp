// When a run began, saved and began again, over all the times that its first process was started. It is kept
// beside the checkpoints, so that the report of a resumed run can state how long the whole run took.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "experiments/results/run_record.hpp"

namespace fomoe::trainer {

class RunHistory {
 public:
  /// `directory` is that of --checkpoints; if it is empty, nothing is kept.
  explicit RunHistory(std::string directory);

  /// The rounds begin: at round 0 in a new run, and otherwise after the last checkpoint.
  void begins(std::int64_t first_round);
  /// A checkpoint is written. A disk that is full has been reported by the checkpoint itself.
  void saved();
  /// The rounds have ended. Empty if the run was never started again, or nothing is kept.
  [[nodiscard]] std::optional<scenario::WholeRun> ended() const;

 private:
  struct Part {
    std::int64_t first_round = 0;
    double began_s = 0, saved_s = 0;  // seconds since 1970; saved_s is the last checkpoint, or the beginning
  };
  [[nodiscard]] std::vector<Part> read() const;
  void write() const;

  std::string path_;
  std::vector<Part> parts_;
};

}  // namespace fomoe::trainer
