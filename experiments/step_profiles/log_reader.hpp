// Readers for the logs of other training programs: they extract the lines that state step times.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "costmodel/inputs/step_profile.hpp"

namespace fomoe::step_profiles {

/// The information about a training step in one line of a log, one span of a trace, or one row of a CSV.
/// Exactly one of `seconds`, `tokens_per_gpu_s` and `parts` is given.
struct LoggedStep {
  std::int64_t line = 0;    // line number from 1; for a trace, the number of the ProfilerStep
  std::int64_t number = 0;  // number of the last optimiser step that the line covers; 0: the line is one step
  double seconds = 0;       // duration of the whole step
  double tokens_per_gpu_s = 0;                 // throughput of each GPU, tokens per second
  std::optional<costmodel::StepSample> parts;  // duration of the step in three parts
  std::int64_t sequences = 0;                  // sequences of the step over all GPUs; 0: not stated
  std::optional<std::int64_t> local_experts;   // empty: not stated
};

/// Facts about the run that a log may state beside the times.
struct StatedFacts {
  std::optional<std::int64_t> gpus, sequences_per_step, sequence_length;
  std::optional<std::string> device_name, dtype;
  std::optional<costmodel::Recomputation> recomputation;
};

struct Log {
  std::vector<LoggedStep> steps;
  StatedFacts stated;
  bool numbered_spans = false;  // whether `line` is the number of a ProfilerStep
};

struct LogFormat {
  std::string_view name;      // for --from
  std::string_view sentence;  // description of what is read
  std::string_view marker;    // a text that only this format contains, to recognise a log of another kind
  std::string_view example;   // an example of a line that is read
  /// `text` is the content of `path`. Returns no steps if the text contains none. Throws FileError if a line
  /// is of this format but invalid.
  Log (*read)(const std::string& path, const std::string& text);
};

/// The formats torchtitan, megatron, nanotron, kineto and csv.
std::span<const LogFormat> log_formats();

Log read_torchtitan(const std::string& path, const std::string& text);
Log read_megatron(const std::string& path, const std::string& text);
Log read_nanotron(const std::string& path, const std::string& text);
Log read_kineto(const std::string& path, const std::string& text);
Log read_csv(const std::string& path, const std::string& text);

}  // namespace fomoe::step_profiles
