// Logs of other people's training programs: which lines tell how long a step took.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "costmodel/inputs/step_profile.hpp"

namespace fomoe::step_profiles {

/// What one line of a log (one span of a trace, one row of a CSV) says of a training step. Exactly one of
/// `seconds`, `tokens_per_gpu_s` and `parts` is given.
struct LoggedStep {
  std::int64_t line = 0;        // of the file, from 1; of a trace the number of its ProfilerStep
  double seconds = 0;           // the whole step
  double tokens_per_gpu_s = 0;  // or what each GPU got through in a second
  std::optional<costmodel::StepSample> parts;  // or the step in three parts
  std::int64_t sequences = 0;                  // of the step over all its GPUs; 0: the line does not say
  std::optional<std::int64_t> local_experts;   // nothing: the line does not say
};

struct Log {
  std::vector<LoggedStep> steps;
  std::string device_name;      // empty: the log does not say
  bool numbered_spans = false;  // `line` numbers ProfilerSteps
};

struct LogFormat {
  std::string_view name;      // for --from
  std::string_view sentence;  // what is read
  std::string_view marker;    // a text that only such logs have, to recognise a log of another kind
  std::string_view example;   // a line that would be read
  /// `text` is what `path` contains. Without a step in it: no steps. Throws FileError where a line
  /// is of this format and wrong.
  Log (*read)(const std::string& path, const std::string& text);
};

/// torchtitan, megatron, nanotron, kineto, csv.
std::span<const LogFormat> log_formats();

Log read_torchtitan(const std::string& path, const std::string& text);
Log read_megatron(const std::string& path, const std::string& text);
Log read_nanotron(const std::string& path, const std::string& text);
Log read_kineto(const std::string& path, const std::string& text);
Log read_csv(const std::string& path, const std::string& text);

}  // namespace fomoe::step_profiles
