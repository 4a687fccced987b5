// How many sequences all GPUs together compute in a step of a log.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "experiments/step_profiles/import.hpp"

namespace fomoe::step_profiles {

/// "file:line" of a step.
std::string place_of(const Log& log, const std::string& path, const LoggedStep& step);

class Batches {
 public:
  /// `facts` has the number of GPUs, the sequence length of the model and what the user gave; `log` what it
  /// states.
  Batches(const Log& log, const std::string& path, const RunFacts& facts);

  /// The sequences of a step: those that the line states. If it states a rounded number, such as 1.02K, the
  /// user's number decides if it lies in the interval, or else the micro-batch and the number of GPUs, if one
  /// number of the interval fits alone. Throws FileError if the line and the user contradict each other, or
  /// if nothing decides.
  std::int64_t of(const LoggedStep& step);
  [[nodiscard]] const std::vector<std::string>& notes() const { return notes_; }

 private:
  [[nodiscard]] Rounded stated_by(const LoggedStep& step) const;
  std::int64_t decided(const LoggedStep& step, const Rounded& stated, const std::string& place);
  void note(const std::string& text);

  const Log& log_;
  const std::string& path_;
  const RunFacts& facts_;
  std::vector<std::string> notes_;
};

}  // namespace fomoe::step_profiles
