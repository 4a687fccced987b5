#include "experiments/step_profiles/batch.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "experiments/scenario/toml/document.hpp"

namespace fomoe::step_profiles {
namespace {

constexpr double kPrecision = 1e-6;  // of products and quotients of whole numbers

std::string interval_text(const Rounded& stated) {
  return fmt::format("a number of three digits, which may be any from {:.0f} to {:.0f}",
                     std::ceil(stated.low - kPrecision), std::floor(stated.high + kPrecision));
}

/// The whole number of the interval that a power of two divides most often: the likeliest batch.
std::int64_t roundest(std::int64_t low, std::int64_t high) {
  std::int64_t unit = 1;
  while (low / (2 * unit) * (2 * unit) + (low % (2 * unit) == 0 ? 0 : 2 * unit) <= high) unit *= 2;
  return (low + unit - 1) / unit * unit;
}

}  // namespace

std::string place_of(const Log& log, const std::string& path, const LoggedStep& step) {
  return fmt::format("{}:{}", path, log.numbered_spans ? 1 : step.line);
}

Batches::Batches(const Log& log, const std::string& path, const RunFacts& facts)
    : log_(log), path_(path), facts_(facts) {}

void Batches::note(const std::string& text) {
  if (std::find(notes_.begin(), notes_.end(), text) == notes_.end()) notes_.push_back(text);
}

/// Zero if the line states nothing.
Rounded Batches::stated_by(const LoggedStep& step) const {
  if (step.sequences) return *step.sequences;
  if (step.tokens) return step.tokens->divided_by(static_cast<double>(facts_.model.sequence_length));
  return {};
}

std::int64_t Batches::decided(const LoggedStep& step, const Rounded& stated, const std::string& place) {
  const auto low = static_cast<std::int64_t>(std::ceil(stated.low - kPrecision)),
             high = static_cast<std::int64_t>(std::floor(stated.high + kPrecision));
  if (low > high || high < 1) {
    // The longest sequence of which the step has a whole number, and which is not longer than the model's.
    std::int64_t length = facts_.model.sequence_length;
    const double tokens = step.tokens ? step.tokens->value : 1;
    while (length > 1 && std::fmod(tokens, static_cast<double>(length)) != 0) --length;
    scenario::fail(
        place, "tokens of a step",
        fmt::format("{:.0f}, which are {:.6g} sequences", step.tokens ? step.tokens->value : 0, stated.value),
        fmt::format("a multiple of the sequence length {}; --sequence-length is that of the run",
                    facts_.model.sequence_length),
        fmt::format("--sequence-length {}", length));
  }
  if (low == high) return low;
  const StatedFacts& run = log_.stated;
  const std::int64_t of_replica =
      run.tensor_parallel.value_or(1) * run.pipeline_parallel.value_or(1) * run.context_parallel.value_or(1);
  const std::int64_t replicas = std::max<std::int64_t>(1, *facts_.gpus / of_replica);
  const std::int64_t micro = facts_.micro_batch_sequences.value_or(1);
  const std::int64_t exact = run.accumulation_steps.value_or(0) * micro * replicas;
  if (exact >= low && exact <= high) return exact;
  const std::int64_t unit = micro * replicas, first = (low + unit - 1) / unit * unit;
  if (first <= high && first + unit > high) {
    note(
        fmt::format("sequences of a step: the log has {}; {} is the only multiple of the {} sequences of a "
                    "micro-batch on {} replicas; --sequences-per-step corrects it",
                    interval_text(stated), first, unit, replicas));
    return first;
  }
  scenario::fail(place, "sequences of a step", interval_text(stated),
                 "--sequences-per-step with the exact number",
                 fmt::format("--sequences-per-step {}", roundest(low, high)));
}

std::int64_t Batches::of(const LoggedStep& step) {
  const std::string place = place_of(log_, path_, step);
  const Rounded stated = stated_by(step);
  const auto given = facts_.sequences_per_step;
  if (stated.value > 0) {
    if (!given) return decided(step, stated, place);
    const auto number = static_cast<double>(*given);
    if (number >= stated.low - kPrecision && number <= stated.high + kPrecision) return *given;
    const bool exact = stated.low == stated.high;
    scenario::fail(place, "sequences of a step",
                   exact ? fmt::format("{} in the log", stated.value) : interval_text(stated) + " in the log",
                   fmt::format("the {} of --sequences-per-step, or the command without this option", *given),
                   fmt::format("--sequences-per-step {}",
                               exact ? static_cast<std::int64_t>(stated.value)
                                     : roundest(static_cast<std::int64_t>(std::ceil(stated.low)),
                                                static_cast<std::int64_t>(stated.high))));
  }
  const double length = static_cast<double>(facts_.model.sequence_length);
  const double of_tokens = std::round(step.tokens_per_gpu * static_cast<double>(*facts_.gpus) / length);
  const std::int64_t sequences =
      given ? *given
            : log_.stated.sequences_per_step.value_or(log_.stated.tokens_per_step.value_or(0) /
                                                      facts_.model.sequence_length);
  if (sequences > 0) {
    if (of_tokens > 0 && std::abs(of_tokens / static_cast<double>(sequences) - 1) > 0.01)
      note(fmt::format(
          "sequences of a step: {:.0f} tokens on each of {} GPUs are {:.0f} sequences of {} tokens; {} is "
          "used, which was given",
          step.tokens_per_gpu, *facts_.gpus, of_tokens, facts_.model.sequence_length, sequences));
    return sequences;
  }
  if (of_tokens < 1) {
    scenario::fail(place, "sequences of a step",
                   fmt::format("{:.0f} tokens on each of {} GPUs, less than a sequence of {} tokens",
                               step.tokens_per_gpu, *facts_.gpus, facts_.model.sequence_length),
                   "the run's own batch", "--sequences-per-step 64");
  }
  return static_cast<std::int64_t>(of_tokens);
}

}  // namespace fomoe::step_profiles
