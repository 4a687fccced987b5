// Logs of NeMo. NeMo 2 writes a line for each step; NeMo 1 writes a progress bar, with "=" after the labels
// and numbers such as "global_step=99.00".
#include <fmt/format.h>

#include "experiments/step_profiles/logs/log_text.hpp"
#include "experiments/step_profiles/logs/megatron_facts.hpp"
#include "experiments/step_profiles/logs/runs.hpp"

namespace fomoe::step_profiles {
namespace {

/// The word after "label:" or "label=".
std::optional<std::string> value_of(const std::string& line, const std::string& label) {
  auto word = word_after(line, label + ":");
  if (!word) word = word_after(line, label + "=");
  while (word && word->ends_with(',')) word->pop_back();
  return word;
}

}  // namespace

std::vector<Log> read_nemo(const std::string& path, const std::string& text, const Columns&) {
  using costmodel::MemoryCounter;
  constexpr const char* kSeconds = "train_step_timing in s";
  const std::string example(example_of("nemo"));
  Runs runs;
  for_each_line(text, [&](const std::string& line, std::int64_t number) {
    runs.add(number, megatron_facts(line));
    const auto seconds = value_of(line, kSeconds);
    if (!seconds) return;
    const std::string place = fmt::format("{}:{}", path, number);
    LoggedStep step;
    step.line = number;
    step.seconds = logged_number(*seconds, place, kSeconds, example);
    // The first step has the number 0.
    auto counted = value_of(line, "global_step");
    if (!counted) counted = word_after(line, "iteration ");
    if (counted) {
      std::string whole = *counted;
      if (const std::size_t point = whole.find('.'); point != std::string::npos) whole.resize(point);
      step.number = (whole == "0" ? 0 : logged_count(whole, place, "global_step", example)) + 1;
    }
    if (const auto batch = value_of(line, "global_batch_size"))
      step.sequences = Rounded::exactly(logged_number(*batch, place, "global_batch_size", example));
    // NeMo 1 logs no batch, but how many sequences the run has consumed.
    if (const auto samples = value_of(line, "consumed_samples"); samples && !samples->starts_with("0"))
      step.consumed = logged_number(*samples, place, "consumed_samples", example);
    if (!runs.add(step)) return;
    for (const auto& [label, counter] : {std::pair{"max_memory_reserved", MemoryCounter::reserved},
                                         std::pair{"max_memory_allocated", MemoryCounter::allocated}}) {
      if (const auto memory = value_of(line, label)) {
        if (const auto bytes = logged_bytes(*memory, 1)) runs.add_memory(counter, *bytes);
      }
    }
  });
  std::vector<Log> logs = runs.take();
  for (Log& log : logs) {
    const std::vector<double> batches = consumed_by_steps(log.steps);
    for (std::size_t i = 0; i < log.steps.size(); ++i) {
      if (!log.steps[i].sequences && batches[i] > 0) log.steps[i].sequences = Rounded::exactly(batches[i]);
    }
  }
  return logs;
}

}  // namespace fomoe::step_profiles
