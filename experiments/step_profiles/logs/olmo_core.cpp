// Logs of OLMo-core. A line "[step=10/1000,epoch=1,eta=…]" is followed by one line for each quantity of the
// step, "    throughput/device/TPS=258,163". Batches are counted in tokens.
#include <fmt/format.h>

#include "experiments/step_profiles/logs/log_text.hpp"
#include "experiments/step_profiles/logs/runs.hpp"

namespace fomoe::step_profiles {
namespace {

/// The configuration is printed as the code of its classes, or as JSON.
std::optional<std::int64_t> setting(const std::string& line, const std::string& name) {
  for (const char* end : {"=", "\": ", "': ", ": "}) {
    if (const auto value = count_after(line, name + end)) return value;
  }
  return std::nullopt;
}

StatedFacts olmo_core_facts(const std::string& line) {
  StatedFacts stated;
  stated.tokens_per_step = setting(line, "global_batch_size");
  stated.micro_batch_tokens = setting(line, "rank_microbatch_size");
  stated.sequence_length = setting(line, "max_sequence_length");
  if (!stated.sequence_length) stated.sequence_length = setting(line, " sequence_length");
  if (const std::size_t end = line.find(" total param"); end != std::string::npos && end > 0) {
    const std::size_t begin = line.find_last_not_of("0123456789,", end - 1) + 1;
    if (const auto count = leading_count(std::string_view(line).substr(begin)))
      stated.parameters = {static_cast<double>(*count), 0};
  } else if (const auto count = count_after(line, "Total parameters: ")) {
    stated.parameters = {static_cast<double>(*count), 0};
  }
  return stated;
}

}  // namespace

std::vector<Log> read_olmo_core(const std::string& path, const std::string& text, const Columns&) {
  constexpr const char* kRate = "throughput/device/TPS=";
  const std::string example(example_of("olmo-core"));
  Runs runs;
  LoggedStep step;  // whose lines are being read
  double memory = 0;
  const auto finish = [&] {
    if (step.tokens_per_gpu_s > 0 && runs.add(step) && memory > 0)
      runs.add_memory(costmodel::MemoryCounter::reserved, memory);
    step = {};
    memory = 0;
  };
  for_each_line(text, [&](const std::string& line, std::int64_t number) {
    const std::string place = fmt::format("{}:{}", path, number);
    if (const auto first = word_after(line, "[step=")) {
      finish();
      step.number = logged_count(*first, place, "[step=", "[step=10/1000,epoch=1,eta=1:02:03]");
      step.line = number;
    } else if (const auto reserved = text_after(line, "gpu_memory/GPU reserved mem (GiB)=")) {
      memory = logged_bytes(*reserved, 0x1p30).value_or(0);
    } else if (const auto tokens = word_after(line, "throughput/total tokens=")) {
      step.consumed = logged_number(*tokens, place, "throughput/total tokens=", example);
    } else if (const auto rate = word_after(line, kRate); rate && step.number > 0) {
      step.tokens_per_gpu_s = logged_number(*rate, place, kRate, example);
      step.line = number;
    } else if (const StatedFacts facts = olmo_core_facts(line); !states_nothing(facts)) {
      finish();
      runs.add(number, facts);
    }
  });
  finish();
  std::vector<Log> logs = runs.take();
  for (Log& log : logs) {
    const std::vector<double> tokens = consumed_by_steps(log.steps);
    for (std::size_t i = 0; i < log.steps.size(); ++i)
      if (tokens[i] > 0) log.steps[i].tokens = Rounded::exactly(tokens[i]);
  }
  return logs;
}

}  // namespace fomoe::step_profiles
