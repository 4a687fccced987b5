// Logs of MaxText. Its first two steps are no step times: they are dispatched before the devices have
// finished, so that the first one has the compilation and the second one takes almost no time.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "experiments/step_profiles/logs/log_text.hpp"
#include "experiments/step_profiles/logs/runs.hpp"
#include "platforms/support/parse_number.hpp"

namespace fomoe::step_profiles {
namespace {

StatedFacts maxtext_facts(const std::string& line) {
  using costmodel::Recomputation;
  StatedFacts stated;
  stated.gpus = count_after(line, "Num_devices: ");
  if (const auto billions = text_after(line, "number parameters: ")) {
    const auto count = parse_leading_number<double>(*billions);
    if (count && *count > 0 && billions->find(" billion") != std::string_view::npos)
      stated.parameters = {*count * 1e9, 0.5e6};  // three digits after the point
  }
  const auto parameter = text_after(line, "Config param ");
  if (!parameter) return stated;
  if (parameter->starts_with("max_target_length: ")) stated.sequence_length = count_after(*parameter, ": ");
  if (parameter->starts_with("gradient_accumulation_steps: "))
    stated.accumulation_steps = count_after(*parameter, ": ");
  if (parameter->starts_with("per_device_batch_size: ")) {
    const auto size = parse_leading_number<double>(*text_after(*parameter, ": "));
    // A fraction of a sequence on each device is one sequence on several.
    if (size && *size >= 1 && *size == std::floor(*size))
      stated.micro_batch_sequences = static_cast<std::int64_t>(*size);
  }
  if (parameter->starts_with("remat_policy: "))
    stated.recomputation =
        text_after(*parameter, ": ")->starts_with("full") ? Recomputation::full : Recomputation::selective;
  return stated;
}

/// The devices that have all tokens of a step, if the same whole number follows from each step. Padding
/// counts on a device, and not in the sum, so that the quotient may be less and no whole number.
std::optional<std::int64_t> devices_of(const Log& log) {
  std::optional<std::int64_t> devices;
  for (const LoggedStep& step : log.steps) {
    if (!step.tokens || step.tokens_per_gpu == 0) return std::nullopt;
    const double quotient = step.tokens->value / step.tokens_per_gpu, whole = std::round(quotient);
    if (whole < 1 || std::abs(quotient / whole - 1) > 2e-3) return std::nullopt;
    if (devices && static_cast<double>(*devices) != whole) return std::nullopt;
    devices = static_cast<std::int64_t>(whole);
  }
  return devices;
}

}  // namespace

std::vector<Log> read_maxtext(const std::string& path, const std::string& text, const Columns&) {
  Runs runs;
  const std::string example(example_of("maxtext"));
  for_each_line(text, [&](const std::string& line, std::int64_t number) {
    runs.add(number, maxtext_facts(line));
    const auto completed = word_after(line, "completed step: "), seconds = word_after(line, "seconds: ");
    if (!completed || !seconds) return;
    const std::string place = fmt::format("{}:{}", path, number);
    LoggedStep step;
    step.line = number;
    std::string counted = *completed;
    while (counted.ends_with(',')) counted.pop_back();
    step.number = (counted == "0" ? 0 : logged_count(counted, place, "completed step:", example)) + 1;
    step.seconds = logged_number(*seconds, place, "seconds:", example);
    if (const auto rate = word_after(line, "Tokens/s/device: "))
      step.tokens_per_gpu = step.seconds * logged_number(*rate, place, "Tokens/s/device:", example);
    if (const auto tokens = count_after(line, "total_weights: "))
      step.tokens = Rounded::exactly(static_cast<double>(*tokens));
    runs.add(step);
  });
  std::vector<Log> logs = runs.take();
  for (Log& log : logs) {
    log.untimed = 2;
    const auto devices = devices_of(log);
    if (!log.stated.gpus) log.stated.likely_gpus = devices;
    // The sum is without padding; what each device computes is not.
    for (LoggedStep& step : log.steps) step.tokens.reset();
  }
  return logs;
}

}  // namespace fomoe::step_profiles
