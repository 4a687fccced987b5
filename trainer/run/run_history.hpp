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

  /// The rounds begin: at round 0 in a new run, and otherwise after the last checkpoint. `absent` are the
  /// sites without which the others go on.
  void begins(std::int64_t first_round, std::vector<std::string> absent = {});
  /// A checkpoint is written. `upkeep_s` are the seconds since begins() in which this process validated,
  /// saved and wrote logs. A disk that is full has been reported by the checkpoint itself.
  void saved(double upkeep_s);
  /// The rounds have ended. Empty if the run was never started again, or nothing is kept.
  [[nodiscard]] std::optional<scenario::WholeRun> ended() const;

 private:
  [[nodiscard]] std::vector<scenario::PartOfRun> read() const;
  void write() const;

  std::string path_;
  std::vector<scenario::PartOfRun> parts_;  // their times are seconds since 1970
};

}  // namespace fomoe::trainer
