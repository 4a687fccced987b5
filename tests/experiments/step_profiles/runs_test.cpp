// Logs with several runs: a file that two jobs appended to, and a job that was restarted.
#include <doctest/doctest.h>

#include "tests/experiments/step_profiles/imported.hpp"

using namespace fomoe;
using namespace fomoe::tests;
using doctest::Approx;

namespace {

std::string titan_start(int gpus, int local, int global, const std::string& more = "") {
  return "[titan] - root - INFO - CUDA capacity: NVIDIA H100 80GB HBM3 with 79.10GiB memory\n"
         "[titan] - root - INFO - Building 1-D device mesh with ['dp_shard'], [" +
         std::to_string(gpus) + "]\n" + more +
         "[titan] - root - INFO - Trainer is initialized with local batch size " + std::to_string(local) +
         ", global batch size " + std::to_string(global) +
         ", gradient accumulation steps 1, sequence length 4096, total steps 100 (warmup 2)\n";
}

std::string titan_steps(int first, int last, const std::string& rate) {
  std::string text;
  for (int step = first; step <= last; step += 10)
    text += "[titan] - root - INFO - step: " + std::to_string(step) + "  loss: 9.0  tps: " + rate + "\n";
  return text;
}

std::string megatron_step(int iteration, const std::string& ms, int batch) {
  return " [2025-03-02 10:00:32] iteration " + std::to_string(iteration) +
         "/     100 | elapsed time per iteration (ms): " + ms +
         " | global batch size: " + std::to_string(batch) + " | lm loss: 1.1E+01 |\n";
}

}  // namespace

TEST_CASE("two runs in a file: each has its own steps and facts, and one must be chosen") {
  // 16 sequences on 8 GPUs at 4,096 tokens/s are 2 s; 64 on 16 at 8,192 tokens/s are 2 s; 64 at 4,096 would
  // be 4 s.
  const std::string text = titan_start(8, 2, 16) + titan_steps(10, 40, "4,096") + titan_start(16, 4, 64) +
                           titan_steps(10, 30, "16,384");
  const std::string refused = refusal(text, "torchtitan", "");
  CHECK(
      refused ==
      "a.log:8: --run: got nothing for a log of 2 runs; expected the number of one run; for example --run 1\n"
      "  run 1: lines 1 to 7, steps 10 to 40, 8 GPUs, 16 sequences in a step, 2 in a micro-batch, "
      "1 accumulation steps, 4096 tokens in a sequence, activation checkpointing: none\n"
      "  run 2: lines 8 to 13, steps 10 to 30, 16 GPUs, 64 sequences in a step, 4 in a micro-batch, "
      "1 accumulation steps, 4096 tokens in a sequence, activation checkpointing: none\n");
  const auto first = profile_of_log(text, "torchtitan", proposal(refused));
  CHECK(first.origin->gpus == 8);
  CHECK(step_of(first) == Approx(2.0));
  const auto second = profile_of_log(text, "torchtitan", "--run 2");
  CHECK(second.origin->gpus == 16);
  CHECK(second.points[0].micro_batch_sequences == 4);
  CHECK(step_of(second) == Approx(1.0));
  CHECK(second.origin->lines == "line 12 to 13, 2 steps used");
  CHECK(refusal(text, "torchtitan", "--run 3")
            .starts_with("a.log:8: --run: got 3 for a log of 2 runs; expected"));
}

TEST_CASE("a fact of one run is not that of another, even if the other does not state it") {
  const std::string full = "[titan] - root - INFO - Applied full activation checkpointing to the model\n";
  const std::string text = titan_start(8, 2, 16, full) + titan_steps(10, 40, "4,096") +
                           titan_start(16, 4, 64) + titan_steps(10, 40, "4,096");
  CHECK(profile_of_log(text, "torchtitan", "--run 1").origin->recomputation ==
        costmodel::Recomputation::full);
  CHECK(profile_of_log(text, "torchtitan", "--run 2").origin->recomputation ==
        costmodel::Recomputation::none);
  // Nor is that of a start that failed before its first step.
  const auto restarted = profile_of_log(
      titan_start(8, 2, 16, full) + titan_start(16, 4, 64) + titan_steps(10, 40, "4,096"), "torchtitan", "");
  CHECK(restarted.origin->gpus == 16);
  CHECK(restarted.origin->recomputation == costmodel::Recomputation::none);
}

TEST_CASE("a restart that goes on where it was is the same run; one that goes back is another") {
  const std::string start = titan_start(8, 2, 16);
  const auto resumed = profile_of_log(
      start + titan_steps(10, 40, "4,096") + start + titan_steps(50, 80, "4,096"), "torchtitan", "");
  CHECK(resumed.points[0].samples.size() == 7);
  const std::string back = start + titan_steps(10, 40, "4,096") + start + titan_steps(40, 60, "2,048");
  CHECK(refusal(back, "torchtitan", "").find("got nothing for a log of 2 runs") != std::string::npos);
  CHECK(step_of(profile_of_log(back, "torchtitan", "--run 2")) == Approx(4.0));
}

TEST_CASE("the number of the step falls without any fact: two runs") {
  std::string text;
  for (int i = 1; i <= 6; ++i) text += megatron_step(i, "500.0", 8);
  for (int i = 4; i <= 9; ++i) text += megatron_step(i, "250.0", 8);
  CHECK(refusal(text, "megatron", "--gpus 8")
            .find("run 2: lines 7 to 12, steps 4 to 9, 8 sequences in a step") != std::string::npos);
  CHECK(step_of(profile_of_log(text, "megatron", "--gpus 8 --run 2")) == Approx(0.25));
}

TEST_CASE("several ranks that log each step are one run, even if one is late") {
  std::string text;
  for (const int step : {10, 10, 20, 20, 10, 30, 20, 30, 40, 40})
    text += "[titan] - root - INFO - step: " + std::to_string(step) + "  loss: 9.0  tps: 4,096\n";
  const auto profile =
      profile_of_log(text, "torchtitan", "--gpus 8 --sequences-per-step 16 --sequence-length 4096");
  CHECK(profile.points[0].samples.size() == 3);
}
