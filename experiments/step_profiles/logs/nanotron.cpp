// Logs of nanotron. Numbers have three digits and a suffix (K, M, G or B, …). Newer versions, which write
// `time_per_iteration_ms`, count the batch in tokens.
#include <fmt/format.h>

#include <cmath>

#include "experiments/step_profiles/logs/log_text.hpp"
#include "experiments/step_profiles/logs/runs.hpp"

namespace fomoe::step_profiles {
namespace {

constexpr const char *kNewerTime = " time_per_iteration_ms:", *kOlderTime = "elapsed_time_per_iteration_ms:",
                     *kGlobalBatch = "global_batch_size:";

/// The configuration is printed as the code of its classes: "parallelism=ParallelismArgs(dp=2,", "pp=1,", ….
StatedFacts nanotron_facts(const std::string& line) {
  StatedFacts stated;
  stated.data_parallel = count_after(line, "ParallelismArgs(dp=");
  stated.pipeline_parallel = count_after(line, " pp=");
  stated.tensor_parallel = count_after(line, " tp=");
  stated.context_parallel = count_after(line, " context_parallel_size=");
  stated.expert_parallel = count_after(line, " expert_parallel_size=");
  stated.sequence_length = count_after(line, "sequence_length=");
  stated.micro_batch_sequences = count_after(line, "micro_batch_size=");
  stated.accumulation_steps = count_after(line, "batch_accumulation_per_replica=");
  return stated;
}

}  // namespace

std::vector<Log> read_nanotron(const std::string& path, const std::string& text, const Columns&) {
  using costmodel::MemoryCounter;
  Runs runs;
  const std::string example(example_of("nanotron"));
  for_each_line(text, [&](const std::string& line, std::int64_t number) {
    const std::string place = fmt::format("{}:{}", path, number);
    if (const auto peak = text_after(line, "Peak allocated"))
      if (const auto bytes = logged_bytes(*peak, 1)) runs.add_memory(MemoryCounter::allocated, *bytes);
    StatedFacts facts = nanotron_facts(line);
    if (const auto total = word_after(line, "Total number of parameters: ")) {
      const Rounded count = logged_rounded(*total, place, "Total number of parameters:", "1.04G");
      facts.parameters = {count.value, count.high - count.value};
    }
    runs.add(number, facts);
    const auto iteration = word_after(line, "iteration:");
    const bool older = line.find(kOlderTime) != std::string::npos;
    const auto elapsed = word_after(line, older ? kOlderTime : kNewerTime);
    if (!iteration || !elapsed) return;
    LoggedStep step;
    step.line = number;
    step.number = logged_count(*iteration, place, "iteration:", example);
    step.seconds = 1e-3 * logged_number(*elapsed, place, older ? kOlderTime : kNewerTime + 1, example);
    if (const auto batch = word_after(line, kGlobalBatch)) {
      const Rounded amount = logged_rounded(*batch, place, kGlobalBatch, example);
      bool tokens = !older;
      if (const auto rate = word_after(line, "tokens_per_sec:")) {
        const double of_step = step.seconds * logged_number(*rate, place, "tokens_per_sec:", example);
        tokens = std::abs(of_step / amount.value - 1) < 0.05;  // both have three digits
      }
      (tokens ? step.tokens : step.sequences) = amount;
    }
    if (!runs.add(step)) return;
    if (const auto memory = word_after(line, "cuda_max_memory_reserved:"))
      runs.add_memory(MemoryCounter::reserved,
                      logged_number(*memory, place, "cuda_max_memory_reserved:", example));
  });
  return runs.take();
}

}  // namespace fomoe::step_profiles
