#include "experiments/step_profiles/import.hpp"

#include <fmt/format.h>

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
  if (step.sequences == 0 && !facts.sequences_per_step) {
    scenario::fail(place, "sequences of a step", "nothing",
                   "the number of sequences in one step, over all GPUs", "--sequences-per-step 64");
  }
  if (step.sequences > 0 && facts.sequences_per_step && *facts.sequences_per_step != step.sequences) {
    scenario::fail(place, "sequences of a step", fmt::format("{} in the log", step.sequences),
                   fmt::format("the {} of --sequences-per-step, or the command without this option",
                               *facts.sequences_per_step),
                   fmt::format("--sequences-per-step {}", step.sequences));
  }
  const std::int64_t sequences = step.sequences > 0 ? step.sequences : *facts.sequences_per_step;
  if (sequences % facts.gpus != 0) {
    scenario::fail(place, "sequences of a step", fmt::format("{} for {} GPUs", sequences, facts.gpus),
                   "a multiple of the number of GPUs, because a profile describes one GPU",
                   fmt::format("--sequences-per-step {}", (sequences / facts.gpus + 1) * facts.gpus));
  }
  return sequences;
}

/// Computes a step's time t from the logged rate r in tokens per second per GPU: t = sequences · sequence
/// length ÷ (GPUs · r). torchtitan divides the rate by the number of GPUs of a replica, so r · GPUs is the
/// total throughput for any kind of parallelism.
double whole_step_s(const LoggedStep& step, std::int64_t sequences, const RunFacts& facts) {
  if (step.tokens_per_gpu_s == 0) return step.seconds;
  const double tokens = static_cast<double>(sequences) * static_cast<double>(facts.model.sequence_length);
  return tokens / (static_cast<double>(facts.gpus) * step.tokens_per_gpu_s);
}

StepSample sample_of(const LoggedStep& step, std::int64_t sequences, const RunFacts& facts) {
  if (step.parts) return *step.parts;
  const double seconds = whole_step_s(step, sequences, facts);
  return {costmodel::kForwardShare * seconds, (1 - costmodel::kForwardShare) * seconds, 0};
}

struct Samples {
  std::vector<StepSample> kept;
  std::int64_t seen = 0;
};

std::string lines_text(const Log& log, const std::vector<std::int64_t>& kept) {
  const char* unit = log.numbered_spans ? "ProfilerStep#" : "line ";
  return fmt::format("{}{} to {}, {} steps used", unit, kept.front(), kept.back(), kept.size());
}

}  // namespace

costmodel::StepProfile import_profile(const LogFormat& format, const std::string& path,
                                      const RunFacts& facts) {
  const std::string text = content_of(path);
  const Log log = format.read(path, text);
  if (log.steps.empty()) refuse_without_steps(format, path, text);

  std::map<std::pair<std::int64_t, std::int64_t>, Samples> points;  // by sequences per GPU and local experts
  std::vector<std::int64_t> kept;
  for (const LoggedStep& step : log.steps) {
    const std::int64_t sequences = sequences_of(log, step, path, facts);
    const std::int64_t experts = step.local_experts.value_or(facts.local_experts);
    if (experts > facts.model.experts) {
      scenario::fail(place_of(log, path, step), "local_experts", std::to_string(experts),
                     fmt::format("at most the model's {} experts", facts.model.experts),
                     std::to_string(facts.model.experts));
    }
    Samples& point = points[{sequences / facts.gpus, experts}];
    if (++point.seen <= facts.warmup) continue;
    point.kept.push_back(sample_of(step, sequences, facts));
    kept.push_back(step.line);
  }

  costmodel::StepProfile profile;
  profile.model = facts.model;
  profile.device_kind = facts.device_kind;
  profile.device_name = facts.device_name.empty() ? log.device_name : facts.device_name;
  if (profile.device_name.empty()) {
    scenario::fail(path + ":1", "device", "nothing in the log",
                   "the name of the device that computed the steps", "--device \"NVIDIA H100 80GB HBM3\"");
  }
  profile.dtype = facts.dtype;
  profile.versions = facts.versions;
  profile.measured_at = facts.measured_at;
  for (const auto& [key, samples] : points) {
    if (samples.kept.empty()) {
      scenario::fail(path + ":1", "warm-up",
                     fmt::format("{} steps with {} sequences for each GPU, all of them warm-up", samples.seen,
                                 key.first),
                     fmt::format("more than the {} steps of --warmup", facts.warmup), "--warmup 0");
    }
    profile.points.push_back({key.first, key.second, facts.skip_token, 0, samples.kept});
  }
  costmodel::ProfileOrigin origin;
  origin.kind = std::string(format.name);
  origin.file = std::filesystem::path(path).filename().string();
  origin.sha256 = sha256_hex(text);
  origin.lines = lines_text(log, kept);
  origin.warmup_dropped = facts.warmup;
  origin.gpus = facts.gpus;
  origin.whole_steps = !log.steps.front().parts;
  profile.origin = origin;
  return profile;
}

}  // namespace fomoe::step_profiles
