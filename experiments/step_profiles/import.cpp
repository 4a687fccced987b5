#include "experiments/step_profiles/import.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <utility>

#include "costmodel/compute/step_seconds.hpp"
#include "experiments/scenario/toml/document.hpp"
#include "experiments/step_profiles/batch.hpp"
#include "experiments/step_profiles/logs/unknown_log.hpp"
#include "experiments/step_profiles/parameters.hpp"
#include "experiments/step_profiles/sha256.hpp"
#include "platforms/support/whole_file.hpp"

namespace fomoe::step_profiles {
namespace {

using costmodel::StepSample;

std::string content_of(const std::string& path) {
  std::optional<std::string> content = whole_file(path);
  if (!content)
    scenario::fail(path + ":1", "log", "no readable file", "a log of training steps",
                   "fomoe profile import train.log --from torchtitan …");
  return *std::move(content);
}

[[noreturn]] void refuse_without_steps(const LogFormat& format, const std::string& path,
                                       const std::string& text, const std::string& rest) {
  std::string meant;
  for (const LogFormat& other : log_formats()) {
    if (meant.empty() && other.name != format.name && text.find(other.marker) != std::string::npos)
      meant = fmt::format("--from {}", other.name);
  }
  try {
    scenario::fail(path + ":1", fmt::format("--from {}", format.name), "no training step",
                   std::string(format.sentence), std::string(format.example), meant);
  } catch (const FileError& error) {
    const bool table = format.name == "csv" || format.name == "kineto";
    throw FileError(error.what() + (meant.empty() && !table ? how_to_import(path, text, rest) : ""));
  }
}

/// Computes a step's time t from the logged rate r in tokens per second per GPU: t = sequences · sequence
/// length ÷ (GPUs · r). torchtitan divides the rate by the number of GPUs of a replica, so r · GPUs is the
/// total throughput for any kind of parallelism.
double whole_step_s(const LoggedStep& step, std::int64_t sequences, const RunFacts& facts) {
  if (step.tokens_per_gpu_s == 0 && step.tokens_per_s == 0) return step.seconds;
  const double tokens = static_cast<double>(sequences) * static_cast<double>(facts.model.sequence_length);
  return tokens / (step.tokens_per_s + static_cast<double>(*facts.gpus) * step.tokens_per_gpu_s);
}

StepSample sample_of(const LoggedStep& step, std::int64_t sequences, const RunFacts& facts) {
  if (step.parts) return *step.parts;
  const double seconds = whole_step_s(step, sequences, facts);
  return {costmodel::kForwardShare * seconds, (1 - costmodel::kForwardShare) * seconds, 0};
}

/// Optimiser steps that each entry of the log covers. An entry of torchtitan or Megatron-LM is the mean of
/// the steps since the entry before it. The first one covers the steps from the start of the run, or, if the
/// run was resumed, as many as the second one.
std::vector<std::int64_t> covered_steps(const std::vector<LoggedStep>& steps) {
  std::vector<std::int64_t> covered(steps.size(), 1);
  for (std::size_t i = 1; i < steps.size(); ++i) {
    if (steps[i].number > steps[i - 1].number) covered[i] = steps[i].number - steps[i - 1].number;
  }
  if (steps.size() > 1 && steps[0].number > 0) covered[0] = std::min(steps[0].number, covered[1]);
  return covered;
}

/// Steps of the same batch size and number of experts.
struct Samples {
  std::vector<StepSample> kept;
  std::vector<std::int64_t> lines;  // of `kept`
  std::vector<StepSample> warm_up;  // step times that are not used
  std::vector<std::int64_t> warm_up_lines;
  std::int64_t seen = 0;  // optimiser steps
};

/// Fills `facts` from the log. Throws FileError if they contradict each other.
template <class Value>
void state(const std::string& path, const char* option, const char* what, const std::optional<Value>& logged,
           std::optional<Value>& given) {
  if (!logged) return;
  if (given && *given != *logged)
    scenario::fail(path + ":1", what, fmt::format("{} in the log", *logged),
                   fmt::format("the {} of {}, or the command without this option", *given, option),
                   fmt::format("{} {}", option, *logged));
  given = logged;
}

std::string lines_text(const Log& log, const std::vector<std::int64_t>& kept) {
  const char* unit = log.numbered_spans ? "ProfilerStep#" : "line ";
  return fmt::format("{}{} to {}, {} steps used", unit, kept.front(), kept.back(), kept.size());
}

void complete(const Log& log, const std::string& path, RunFacts& facts) {
  const StatedFacts& stated = log.stated;
  state(path, "--gpus", "GPUs", stated.gpus, facts.gpus);
  if (!facts.gpus) facts.gpus = stated.likely_gpus;
  state(path, "--sequence-length", "sequence length", stated.sequence_length, facts.sequence_length);
  if (facts.sequence_length) facts.model.sequence_length = *facts.sequence_length;
  // Lines of Megatron-LM state their own batch, which may grow from the start of the run.
  const bool lines_state = std::all_of(log.steps.begin(), log.steps.end(),
                                       [](const LoggedStep& step) { return step.sequences || step.tokens; });
  if (!lines_state)
    state(path, "--sequences-per-step", "sequences of a step", stated.sequences_per_step,
          facts.sequences_per_step);
  // The user's micro-batch corrects that of the log.
  if (!facts.micro_batch_sequences) {
    facts.micro_batch_sequences = stated.micro_batch_sequences;
    const std::int64_t tokens = stated.micro_batch_tokens.value_or(0), length = facts.model.sequence_length;
    if (!facts.micro_batch_sequences && tokens >= length && tokens % length == 0)
      facts.micro_batch_sequences = tokens / length;
  }
}

/// Divides the steps of the log into those of each batch size and expert count, and those of each into
/// warm-up and the rest.
std::map<std::pair<std::int64_t, std::int64_t>, Samples> samples_of(const Log& log, const std::string& path,
                                                                    const RunFacts& facts, Batches& batches) {
  std::map<std::pair<std::int64_t, std::int64_t>, Samples> points;
  const std::vector<std::int64_t> covered = covered_steps(log.steps);
  const std::int64_t warmup = facts.warmup.value_or(kUsualWarmup);
  for (std::size_t i = 0; i < log.steps.size(); ++i) {
    const LoggedStep& step = log.steps[i];
    const std::int64_t sequences = batches.of(step);
    const std::int64_t experts = step.local_experts.value_or(facts.local_experts);
    if (experts > facts.model.experts) {
      scenario::fail(place_of(log, path, step), "local_experts", std::to_string(experts),
                     fmt::format("at most the model's {} experts", facts.model.experts),
                     std::to_string(facts.model.experts));
    }
    Samples& point = points[{sequences, experts}];
    const bool warm = point.seen >= warmup;  // none of the covered steps is warm-up
    point.seen += covered[i];
    if (static_cast<std::int64_t>(i) < log.untimed) continue;
    (warm ? point.kept : point.warm_up).push_back(sample_of(step, sequences, facts));
    (warm ? point.lines : point.warm_up_lines).push_back(step.line);
  }
  return points;
}

/// A log that begins later in the run has no warm-up, unless the run was resumed there: its first steps count
/// if there are no others and nobody has stated a warm-up.
bool use_warm_up(const Log& log, const RunFacts& facts, Samples& samples) {
  if (!samples.kept.empty() || samples.warm_up.empty() || facts.warmup ||
      log.steps.front().number <= kUsualWarmup)
    return false;
  samples.kept = samples.warm_up;
  samples.lines = samples.warm_up_lines;
  return true;
}

/// Micro-batches of a replica in a step; 0 if they are not known.
std::int64_t micro_batches_of(const StatedFacts& stated, const RunFacts& facts, std::int64_t sequences) {
  if (!facts.micro_batch_sequences) return 0;
  const std::int64_t of_replica = stated.tensor_parallel.value_or(1) * stated.pipeline_parallel.value_or(1) *
                                  stated.context_parallel.value_or(1);
  const std::int64_t of_pass =
      *facts.micro_batch_sequences * std::max<std::int64_t>(1, *facts.gpus / of_replica);
  return sequences % of_pass == 0 ? sequences / of_pass : 0;
}

costmodel::ProfileOrigin origin_of(const LogFormat& format, const std::string& path, const Log& log,
                                   const RunFacts& facts, const std::vector<std::int64_t>& lines) {
  costmodel::ProfileOrigin origin;
  origin.kind = std::string(format.name);
  origin.file = std::filesystem::path(path).filename().string();
  origin.sha256 = sha256_hex(content_of(path));
  origin.lines = lines_text(log, lines);
  origin.warmup_dropped = facts.warmup.value_or(kUsualWarmup);
  origin.gpus = *facts.gpus;
  origin.tensor_parallel = log.stated.tensor_parallel.value_or(1);
  origin.pipeline_parallel = log.stated.pipeline_parallel.value_or(1);
  origin.context_parallel = log.stated.context_parallel.value_or(1);
  origin.recomputation = facts.recomputation
                             ? *facts.recomputation
                             : log.stated.recomputation.value_or(costmodel::Recomputation::unstated);
  origin.whole_steps = !log.steps.front().parts;
  return origin;
}

}  // namespace

std::vector<Log> read_runs(const LogFormat& format, const std::string& path, const Columns& columns,
                           const std::string& rest) {
  const std::string text = content_of(path);
  std::vector<Log> runs = format.read(path, text, columns);
  if (runs.empty()) refuse_without_steps(format, path, text, rest);
  return runs;
}

std::vector<MissingFact> missing_facts(const Log& log, const RunFacts& facts) {
  std::vector<MissingFact> missing;
  if (!facts.gpus && !log.stated.gpus && !log.stated.likely_gpus)
    missing.push_back({"--gpus", "the number of GPUs that compute a step together", "8"});
  const bool sequences = std::all_of(log.steps.begin(), log.steps.end(), [](const LoggedStep& step) {
    return step.sequences || step.tokens || step.tokens_per_gpu > 0;
  });
  if (!sequences && !facts.sequences_per_step && !log.stated.sequences_per_step &&
      !log.stated.tokens_per_step)
    missing.push_back(
        {"--sequences-per-step", "the number of sequences in one optimiser step, over all GPUs", "64"});
  if (facts.dtype.empty() && !log.stated.dtype)
    missing.push_back({"--dtype", "the number format of the matrix products", "bf16"});
  if (facts.device_name.empty() && !log.stated.device_name)
    missing.push_back(
        {"--device", "the name of the device that computed the steps", "\"NVIDIA H100 80GB HBM3\""});
  return missing;
}

Imported import_profile(const LogFormat& format, const std::string& path, const Log& log, RunFacts facts) {
  complete(log, path, facts);
  check_parameters(log, path, facts.model);
  Batches batches(log, path, facts);
  auto points = samples_of(log, path, facts, batches);

  if (const std::int64_t most = points.rbegin()->first.first; facts.micro_batch_sequences.value_or(0) > most)
    scenario::fail(path + ":1", "--micro-batch-sequences", fmt::format("{}", *facts.micro_batch_sequences),
                   fmt::format("at most the {} sequences of a step", most), "--micro-batch-sequences 1");

  Imported imported;
  costmodel::StepProfile& profile = imported.profile;
  profile.model = facts.model;
  profile.device_kind = facts.device_kind;
  profile.device_name = facts.device_name.empty() ? log.stated.device_name.value() : facts.device_name;
  profile.dtype = facts.dtype.empty() ? log.stated.dtype.value() : facts.dtype;
  profile.versions = facts.versions;
  profile.measured_at = facts.measured_at;
  std::vector<std::int64_t> lines;
  bool without_warm_up = false;
  for (auto& [key, samples] : points) {
    if (use_warm_up(log, facts, samples)) {
      imported.notes.push_back(fmt::format(
          "the log begins at step {} and has {} steps; all of them are used, and none as warm-up (--warmup)",
          log.steps.front().number, samples.seen));
      without_warm_up = true;
    }
    if (samples.kept.empty()) {
      const std::int64_t timed = static_cast<std::int64_t>(samples.warm_up.size());
      scenario::fail(path + ":1", "warm-up",
                     fmt::format("{} steps with {} sequences, all of them warm-up", samples.seen, key.first),
                     timed > 0 ? fmt::format("an entry of the log after the {} steps of --warmup",
                                             facts.warmup.value_or(kUsualWarmup))
                               : fmt::format("more than {} steps, because the first {} are no step times",
                                             log.untimed, log.untimed),
                     timed > 0 ? "--warmup 0" : "a longer log");
    }
    costmodel::ProfilePoint point{facts.micro_batch_sequences.value_or(0), key.second, facts.skip_token,
                                  static_cast<std::int64_t>(log.memory.bytes), samples.kept};
    point.sequences_per_gpu = static_cast<double>(key.first) / static_cast<double>(*facts.gpus);
    point.micro_batches = micro_batches_of(log.stated, facts, key.first);
    if (log.memory.bytes > 0) point.memory_counter = log.memory.counter;
    profile.points.push_back(std::move(point));
    lines.insert(lines.end(), samples.lines.begin(), samples.lines.end());
  }
  std::sort(lines.begin(), lines.end());
  if (without_warm_up) facts.warmup = 0;
  profile.origin = origin_of(format, path, log, facts, lines);
  if (!facts.micro_batch_sequences)
    imported.notes.emplace_back(
        "the log does not state the micro-batch, without which memory has no activations; "
        "--micro-batch-sequences gives it, or compute.micro_batch_sequences in a scenario");
  imported.notes.insert(imported.notes.end(), batches.notes().begin(), batches.notes().end());
  return imported;
}

}  // namespace fomoe::step_profiles
