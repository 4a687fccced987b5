// Divides a log into the runs of the training program that wrote it: a file that several jobs appended to,
// or a job that was restarted, has several.
#pragma once
#include <cstdint>
#include <vector>

#include "experiments/step_profiles/logs/log_reader.hpp"

namespace fomoe::step_profiles {

/// Sets in `to` what `from` states.
void merge(StatedFacts& to, const StatedFacts& from);
/// Whether both state a fact, with different values.
bool contradict(const StatedFacts& a, const StatedFacts& b);
bool states_nothing(const StatedFacts& facts);

/// Sequences or tokens of each step, from what the run had consumed by then; 0 where that does not tell.
std::vector<double> consumed_by_steps(const std::vector<LoggedStep>& steps);

/// Facts that a program states before its first step. A program that ended before that states them a second
/// time when it is started again: a fact that changes drops those of the first start.
class StartFacts {
 public:
  void add(const StatedFacts& facts);
  [[nodiscard]] const StatedFacts& all() const { return all_; }
  [[nodiscard]] bool empty() const { return lines_.empty(); }

 private:
  struct Line {
    StatedFacts facts;
    bool again;  // it states nothing that was not stated before
  };
  std::vector<Line> lines_;
  StatedFacts all_;
};

/// Collects the lines of a log in their order. A new run begins where a fact that was stated before its
/// steps changes, or where the number of the step falls. Several ranks may log the same step; only the first
/// line of each step counts.
class Runs {
 public:
  void add(std::int64_t line, const StatedFacts& facts);
  /// Whether the step counts, because it is not another rank's line of a step that was logged already.
  bool add(const LoggedStep& step);
  /// Of the run whose steps were added last.
  void add_memory(costmodel::MemoryCounter counter, double bytes);
  /// The runs that have steps.
  [[nodiscard]] std::vector<Log> take();

 private:
  void begin(const StatedFacts& facts);

  std::vector<Log> runs_;
  StartFacts start_;  // stated since the last step
  std::int64_t start_line_ = 0;
  bool ranks_repeat_ = false;
};

}  // namespace fomoe::step_profiles
