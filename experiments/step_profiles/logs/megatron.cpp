// Logs of Megatron-LM, and of Megatron-DeepSpeed, which writes seconds in place of milliseconds.
#include <fmt/format.h>

#include "experiments/step_profiles/logs/log_text.hpp"
#include "experiments/step_profiles/logs/megatron_facts.hpp"
#include "experiments/step_profiles/logs/runs.hpp"

namespace fomoe::step_profiles {

std::vector<Log> read_megatron(const std::string& path, const std::string& text, const Columns&) {
  using costmodel::MemoryCounter;
  constexpr const char *kMilliseconds = "elapsed time per iteration (ms):",
                       *kSeconds = "elapsed time per iteration (s):", *kBatch = "global batch size:",
                       *kIteration = "iteration ";
  Runs runs;
  const std::string example(example_of("megatron"));
  for_each_line(text, [&](const std::string& line, std::int64_t number) {
    // "[Rank 0] (after 20 iterations) memory (MB) | allocated: 3270.16 | max allocated: 5670.39 | …", in MiB.
    for (const auto& [label, counter] : {std::pair{"| max allocated:", MemoryCounter::allocated},
                                         std::pair{"| max reserved:", MemoryCounter::reserved}}) {
      if (const auto memory = text_after(line, label)) {
        if (const auto bytes = logged_bytes(*memory, 0x1p20)) runs.add_memory(counter, *bytes);
      }
    }
    runs.add(number, megatron_facts(line));
    const auto iteration = word_after(line, kIteration), milliseconds = word_after(line, kMilliseconds),
               seconds = word_after(line, kSeconds);
    if (!iteration || !(milliseconds || seconds)) return;
    const std::string place = fmt::format("{}:{}", path, number);
    LoggedStep step;
    step.line = number;
    step.number = logged_count(*iteration, place, kIteration, example);
    step.seconds = milliseconds ? 1e-3 * logged_number(*milliseconds, place, kMilliseconds, example)
                                : logged_number(*seconds, place, kSeconds, example);
    if (const auto batch = word_after(line, kBatch))
      step.sequences = Rounded::exactly(static_cast<double>(logged_count(*batch, place, kBatch, example)));
    runs.add(step);
  });
  return runs.take();
}

}  // namespace fomoe::step_profiles
