// Readers for the logs of other training programs: they extract the lines that state step times, and the
// facts about the run.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "costmodel/inputs/step_profile.hpp"
#include "experiments/step_profiles/logs/log_text.hpp"

namespace fomoe::step_profiles {

/// The information about a training step in one line of a log, one span of a trace, or one row of a CSV.
/// Exactly one of `seconds`, `tokens_per_gpu_s`, `tokens_per_s` and `parts` is given.
struct LoggedStep {
  std::int64_t line = 0;    // line number from 1; for a trace, the number of the ProfilerStep
  std::int64_t number = 0;  // number of the last optimiser step that the line covers; 0: the line is one step
  double seconds = 0;       // duration of the whole step
  double tokens_per_gpu_s = 0;                 // throughput of each GPU, tokens per second
  double tokens_per_s = 0;                     // throughput of all GPUs
  std::optional<costmodel::StepSample> parts;  // duration of the step in three parts
  // The batch, over all GPUs: at most one of these.
  std::optional<Rounded> sequences, tokens;
  double tokens_per_gpu = 0;  // tokens of the step on one GPU; 0: not stated
  double consumed = 0;        // sequences or tokens from the start of the run to this step; 0: not stated
  std::optional<std::int64_t> local_experts;  // empty: not stated
};

/// Parameters that a log states, and by how much its rounding may be off.
struct StatedParameters {
  double count = 0, rounding = 0;
  bool operator==(const StatedParameters&) const = default;
};

/// Facts about the run that a log may state beside the times.
struct StatedFacts {
  std::optional<std::int64_t> gpus, sequences_per_step, sequence_length;
  std::optional<std::int64_t> likely_gpus;      // computed from other facts; the user's number goes first
  std::optional<std::int64_t> tokens_per_step;  // over all GPUs
  std::optional<std::int64_t> micro_batch_sequences, micro_batch_tokens, accumulation_steps;
  // Replicas of the model that share the batch, and the GPUs of each.
  std::optional<std::int64_t> data_parallel, tensor_parallel, pipeline_parallel, context_parallel;
  std::optional<std::int64_t> expert_parallel;
  std::optional<std::string> device_name, dtype;
  std::optional<costmodel::Recomputation> recomputation;
  std::optional<StatedParameters> parameters;
  /// Parameters on the GPUs of each tensor- and pipeline-parallel rank.
  std::map<std::pair<std::int64_t, std::int64_t>, std::int64_t> parameters_of_ranks;
};

/// Peak memory of the fullest GPU that logged its own. Allocated bytes are preferred to reserved ones.
struct LoggedMemory {
  double bytes = 0;  // 0: not stated
  costmodel::MemoryCounter counter = costmodel::MemoryCounter::reserved;
};

/// One run of a training program. A file may have several.
struct Log {
  std::vector<LoggedStep> steps;
  StatedFacts stated;
  LoggedMemory memory;
  std::int64_t first_line = 0, last_line = 0;
  std::int64_t untimed = 0;     // first entries whose times are not those of a step
  bool numbered_spans = false;  // whether `line` is the number of a ProfilerStep
};

/// Which column of a CSV file has which quantity: {"step_s", "run-1 - timing/step_time"}.
using Columns = std::map<std::string, std::string>;

struct LogFormat {
  std::string_view name;      // for --from
  std::string_view sentence;  // description of what is read
  std::string_view marker;    // a text that only this format contains, to recognise a log of another kind
  std::string_view example;   // an example of a line that is read
  /// `text` is the content of `path`. Returns the runs that have steps, in their order. Throws FileError if a
  /// line is of this format but invalid. Only a CSV file has columns.
  std::vector<Log> (*read)(const std::string& path, const std::string& text, const Columns& columns);
};

/// All formats, csv last.
std::span<const LogFormat> log_formats();
std::string_view example_of(std::string_view format);

std::vector<Log> read_torchtitan(const std::string& path, const std::string& text, const Columns&);
std::vector<Log> read_megatron(const std::string& path, const std::string& text, const Columns&);
std::vector<Log> read_nemo(const std::string& path, const std::string& text, const Columns&);
std::vector<Log> read_nanotron(const std::string& path, const std::string& text, const Columns&);
std::vector<Log> read_maxtext(const std::string& path, const std::string& text, const Columns&);
std::vector<Log> read_olmo_core(const std::string& path, const std::string& text, const Columns&);
std::vector<Log> read_kineto(const std::string& path, const std::string& text, const Columns&);
std::vector<Log> read_csv(const std::string& path, const std::string& text, const Columns& columns);

/// Quantities that a column of a CSV file may have.
const std::vector<std::string>& csv_quantities();

}  // namespace fomoe::step_profiles
