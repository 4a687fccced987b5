#include "experiments/step_profiles/import.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <utility>

#include "costmodel/compute/step_seconds.hpp"
#include "experiments/scenario/toml/document.hpp"
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

std::string place_of(const Log& log, const std::string& path, const LoggedStep& step) {
  return fmt::format("{}:{}", path, log.numbered_spans ? 1 : step.line);
}

[[noreturn]] void refuse_without_steps(const LogFormat& format, const std::string& path,
                                       const std::string& text) {
  std::string meant;
  for (const LogFormat& other : log_formats()) {
    if (meant.empty() && other.name != format.name && text.find(other.marker) != std::string::npos)
      meant = fmt::format("--from {}", other.name);
  }
  scenario::fail(path + ":1", fmt::format("--from {}", format.name), "no training step",
                 std::string(format.sentence), std::string(format.example), meant);
}

/// The number of sequences that all GPUs together compute in the step. It is taken from the log line, or else
/// from the facts that the user supplied.
std::int64_t sequences_of(const Log& log, const LoggedStep& step, const std::string& path,
                          const RunFacts& facts) {
  const std::string place = place_of(log, path, step);
  if (step.sequences > 0 && facts.sequences_per_step && *facts.sequences_per_step != step.sequences) {
    scenario::fail(place, "sequences of a step", fmt::format("{} in the log", step.sequences),
                   fmt::format("the {} of --sequences-per-step, or the command without this option",
                               *facts.sequences_per_step),
                   fmt::format("--sequences-per-step {}", step.sequences));
  }
  const std::int64_t sequences = step.sequences > 0 ? step.sequences : *facts.sequences_per_step;
  if (sequences % *facts.gpus != 0) {
    scenario::fail(place, "sequences of a step", fmt::format("{} for {} GPUs", sequences, *facts.gpus),
                   "a multiple of the number of GPUs, because a profile describes one GPU",
                   fmt::format("--sequences-per-step {}", (sequences / *facts.gpus + 1) * *facts.gpus));
  }
  return sequences;
}

/// Computes a step's time t from the logged rate r in tokens per second per GPU: t = sequences · sequence
/// length ÷ (GPUs · r). torchtitan divides the rate by the number of GPUs of a replica, so r · GPUs is the
/// total throughput for any kind of parallelism.
double whole_step_s(const LoggedStep& step, std::int64_t sequences, const RunFacts& facts) {
  if (step.tokens_per_gpu_s == 0) return step.seconds;
  const double tokens = static_cast<double>(sequences) * static_cast<double>(facts.model.sequence_length);
  return tokens / (static_cast<double>(*facts.gpus) * step.tokens_per_gpu_s);
}

StepSample sample_of(const LoggedStep& step, std::int64_t sequences, const RunFacts& facts) {
  if (step.parts) return *step.parts;
  const double seconds = whole_step_s(step, sequences, facts);
  return {costmodel::kForwardShare * seconds, (1 - costmodel::kForwardShare) * seconds, 0};
}

struct Samples {
  std::vector<StepSample> kept;
  std::int64_t seen = 0;  // optimiser steps
};

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

}  // namespace

Log read_log(const LogFormat& format, const std::string& path) {
  const std::string text = content_of(path);
  Log log = format.read(path, text);
  if (log.steps.empty()) refuse_without_steps(format, path, text);
  return log;
}

std::vector<MissingFact> missing_facts(const Log& log, const RunFacts& facts) {
  std::vector<MissingFact> missing;
  if (!facts.gpus && !log.stated.gpus)
    missing.push_back({"--gpus", "the number of GPUs that compute a step together", "8"});
  const bool sequences = std::all_of(log.steps.begin(), log.steps.end(),
                                     [](const LoggedStep& step) { return step.sequences > 0; });
  if (!sequences && !facts.sequences_per_step && !log.stated.sequences_per_step)
    missing.push_back(
        {"--sequences-per-step", "the number of sequences in one optimiser step, over all GPUs", "64"});
  if (facts.dtype.empty() && !log.stated.dtype)
    missing.push_back({"--dtype", "the number format of the matrix products", "bf16"});
  if (facts.device_name.empty() && !log.stated.device_name)
    missing.push_back(
        {"--device", "the name of the device that computed the steps", "\"NVIDIA H100 80GB HBM3\""});
  return missing;
}

costmodel::StepProfile import_profile(const LogFormat& format, const std::string& path, const Log& log,
                                      RunFacts facts) {
  state(path, "--gpus", "GPUs", log.stated.gpus, facts.gpus);
  state(path, "--sequences-per-step", "sequences of a step", log.stated.sequences_per_step,
        facts.sequences_per_step);
  state(path, "--sequence-length", "sequence length", log.stated.sequence_length, facts.sequence_length);
  if (facts.sequence_length) facts.model.sequence_length = *facts.sequence_length;

  std::map<std::pair<std::int64_t, std::int64_t>, Samples> points;  // by sequences per GPU and local experts
  std::vector<std::int64_t> kept;
  const std::vector<std::int64_t> covered = covered_steps(log.steps);
  for (std::size_t i = 0; i < log.steps.size(); ++i) {
    const LoggedStep& step = log.steps[i];
    const std::int64_t sequences = sequences_of(log, step, path, facts);
    const std::int64_t experts = step.local_experts.value_or(facts.local_experts);
    if (experts > facts.model.experts) {
      scenario::fail(place_of(log, path, step), "local_experts", std::to_string(experts),
                     fmt::format("at most the model's {} experts", facts.model.experts),
                     std::to_string(facts.model.experts));
    }
    Samples& point = points[{sequences / *facts.gpus, experts}];
    const bool warm = point.seen >= facts.warmup;  // none of the covered steps is warm-up
    point.seen += covered[i];
    if (!warm) continue;
    point.kept.push_back(sample_of(step, sequences, facts));
    kept.push_back(step.line);
  }

  costmodel::StepProfile profile;
  profile.model = facts.model;
  profile.device_kind = facts.device_kind;
  profile.device_name = facts.device_name.empty() ? log.stated.device_name.value() : facts.device_name;
  profile.dtype = facts.dtype.empty() ? log.stated.dtype.value() : facts.dtype;
  profile.versions = facts.versions;
  profile.measured_at = facts.measured_at;
  for (const auto& [key, samples] : points) {
    if (samples.kept.empty()) {
      scenario::fail(path + ":1", "warm-up",
                     fmt::format("{} steps with {} sequences for each GPU, all of them warm-up", samples.seen,
                                 key.first),
                     fmt::format("an entry of the log after the {} steps of --warmup", facts.warmup),
                     "--warmup 0");
    }
    profile.points.push_back({key.first, key.second, facts.skip_token, 0, samples.kept});
  }
  costmodel::ProfileOrigin origin;
  origin.kind = std::string(format.name);
  origin.file = std::filesystem::path(path).filename().string();
  origin.sha256 = sha256_hex(content_of(path));
  origin.lines = lines_text(log, kept);
  origin.warmup_dropped = facts.warmup;
  origin.gpus = *facts.gpus;
  origin.recomputation = facts.recomputation
                             ? *facts.recomputation
                             : log.stated.recomputation.value_or(costmodel::Recomputation::unstated);
  origin.whole_steps = !log.steps.front().parts;
  profile.origin = origin;
  return profile;
}

}  // namespace fomoe::step_profiles
