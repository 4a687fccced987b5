// A log of several runs: which of them is imported.
#include <fmt/format.h>

#include "experiments/scenario/toml/document.hpp"
#include "experiments/step_profiles/import.hpp"
#include "platforms/support/input_error.hpp"

namespace fomoe::step_profiles {
namespace {

std::string run_text(const Log& run, std::size_t number) {
  std::string text = fmt::format("run {}: lines {} to {}", number, run.first_line, run.last_line);
  if (run.steps.front().number > 0)
    text += fmt::format(", steps {} to {}", run.steps.front().number, run.steps.back().number);
  const auto state = [&](const std::optional<std::int64_t>& fact, const char* what) {
    if (fact) text += fmt::format(", {} {}", *fact, what);
  };
  const StatedFacts& facts = run.stated;
  state(facts.gpus, "GPUs");
  state(facts.sequences_per_step, "sequences in a step");
  if (!facts.sequences_per_step && run.steps.back().sequences)
    text += fmt::format(", {:g} sequences in a step", run.steps.back().sequences->value);
  state(facts.micro_batch_sequences, "in a micro-batch");
  state(facts.accumulation_steps, "accumulation steps");
  state(facts.sequence_length, "tokens in a sequence");
  state(facts.tensor_parallel, "tensor-parallel");
  state(facts.pipeline_parallel, "pipeline-parallel");
  if (facts.recomputation)
    text += fmt::format(", activation checkpointing: {}", costmodel::to_string(*facts.recomputation));
  return text;
}

}  // namespace

const Log& chosen_run(const std::vector<Log>& runs, const std::string& path,
                      std::optional<std::int64_t> number) {
  if (number && *number >= 1 && *number <= static_cast<std::int64_t>(runs.size()))
    return runs[static_cast<std::size_t>(*number - 1)];
  if (!number && runs.size() == 1) return runs.front();
  std::string list;
  std::size_t longest = 0;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    list += "\n  " + run_text(runs[i], i + 1);
    if (runs[i].steps.size() >= runs[longest].steps.size()) longest = i;
  }
  try {
    scenario::fail(fmt::format("{}:{}", path, runs.size() > 1 ? runs[1].first_line : 1), "--run",
                   number ? fmt::format("{} for a log of {} runs", *number, runs.size())
                          : fmt::format("nothing for a log of {} runs", runs.size()),
                   "the number of one run", fmt::format("--run {}", longest + 1));
  } catch (const FileError& error) {
    throw FileError(error.what() + list);
  }
}

}  // namespace fomoe::step_profiles
