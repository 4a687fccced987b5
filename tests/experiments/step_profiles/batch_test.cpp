// How many sequences a step has: batches that GPUs share, and numbers that were rounded to three digits.
#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "tests/experiments/step_profiles/imported.hpp"

using namespace fomoe;
using namespace fomoe::tests;
using doctest::Approx;

namespace {

std::string megatron(int gpus, int batch, const std::string& ms) {
  std::string text = "  world_size ...................................... " + std::to_string(gpus) +
                     "\n  seq_length ...................................... 2048\n";
  for (int i = 1; i <= 6; ++i)
    text += " iteration " + std::to_string(i) + "/ 1000 | elapsed time per iteration (ms): " + ms +
            " | global batch size: " + std::to_string(batch) + " |\n";
  return text;
}

std::string nanotron(const std::string& batch, const std::string& start = "") {
  std::string text = start;
  for (int i = 1; i <= 6; ++i)
    text += "12/14/2024 10:11:1" + std::to_string(i) +
            " [INFO|DP=0|PP=0|TP=0|ip-1]: iteration: " + std::to_string(i) +
            " / 100 | consumed_tokens: 4.19M | elapsed_time_per_iteration_ms: 8.12K | global_batch_size: " +
            batch + " | lm_loss: 11.2 | lr: 0.0001\n";
  return text;
}

}  // namespace

TEST_CASE(
    "fewer sequences than GPUs: a GPU has a fraction, and the same batch on as many GPUs takes as long") {
  const Folder folder;
  const Ran import = import_text(folder, megatron(96, 36, "7000.0"), "megatron", "--model small");
  REQUIRE_MESSAGE(import.exit_status == 0, import.err);
  const auto profile = scenario::read_step_profile(folder / "p.json");
  CHECK(profile.points[0].timed_sequences() == Approx(0.375));
  const Ran ran =
      run_in(folder.path(), "fomoe simulate " + source_dir() +
                                "/tests/ideal/two-sites.toml --set model.sequence_length=2048 "
                                "--set workload.global_batch_sequences=72 --set "
                                "compute.gpus_per_site=96 --set compute.pipeline_parallel=4 "
                                "--set compute.tensor_parallel=4 --output - --set compute.profile=" +
                                (folder / "p.json"));
  REQUIRE_MESSAGE(ran.exit_status == 0, ran.err);
  const auto report = nlohmann::json::parse(ran.out);
  CHECK(report["round"]["compute_s"].get<double>() * report["round"]["count"].get<double>() /
            report["optimizer_steps"].get<double>() ==
        Approx(7.0).epsilon(1e-3));
}

TEST_CASE("a batch that is no multiple of the GPUs is accepted") {
  const auto profile =
      profile_of_log("step: 1  tps: 512\nstep: 2  tps: 512\nstep: 10  tps: 512\nstep: 20  tps: 512\n",
                     "torchtitan", "--gpus 4 --sequences-per-step 6 --sequence-length 2048");
  CHECK(profile.points[0].timed_sequences() == 1.5);
  CHECK(step_of(profile) == Approx(6.0));  // 1.5 · 2,048 tokens at 512 per second
}

TEST_CASE("1.54K is any number from 1,535 to 1,545") {
  // The exact number of the user counts, if it lies in the interval.
  CHECK(profile_of_log(nanotron("1.54K"), "nanotron", "--gpus 8 --sequences-per-step 1537")
            .points[0]
            .timed_sequences() == Approx(1537.0 / 8));
  const std::string outside = refusal(nanotron("1.54K"), "nanotron", "--gpus 8 --sequences-per-step 1546");
  CHECK(outside.starts_with(
      "a.log:1: sequences of a step: got a number of three digits, which may be any from 1535 to "
      "1545 in the log; expected the 1546 of --sequences-per-step"));
  CHECK(proposal(outside) == "--sequences-per-step 1536");
  // One multiple of 64 GPUs lies in it.
  const Folder folder;
  const Ran only = import_text(folder, nanotron("1.54K"), "nanotron", "--model small --gpus 64");
  REQUIRE_MESSAGE(only.exit_status == 0, only.err);
  CHECK(only.err.find("1536 is the only multiple of the 64 sequences of a micro-batch on 64 replicas") !=
        std::string::npos);
  CHECK(scenario::read_step_profile(folder / "p.json").points[0].timed_sequences() == 24);
  // Two multiples of 8 lie in it: nothing decides, and the proposal works.
  const std::string asked = refusal(nanotron("1.54K"), "nanotron", "--gpus 8");
  CHECK(asked.find("expected --sequences-per-step with the exact number") != std::string::npos);
  CHECK(proposal(asked) == "--sequences-per-step 1536");
  CHECK(profile_of_log(nanotron("1.54K"), "nanotron", "--gpus 8 " + proposal(asked))
            .points[0]
            .timed_sequences() == 192);
  // A micro-batch of 32 decides, as does the configuration, which nanotron prints.
  CHECK(profile_of_log(nanotron("1.54K"), "nanotron", "--gpus 8 --micro-batch-sequences 32")
            .points[0]
            .micro_batches == 6);
  const std::string configuration =
      "[INFO|DP=0|PP=0|TP=0]:        parallelism=ParallelismArgs(dp=4,\n"
      "[INFO|DP=0|PP=0|TP=0]:                                    pp=1,\n"
      "[INFO|DP=0|PP=0|TP=0]:                                    tp=2,\n"
      "[INFO|DP=0|PP=0|TP=0]:        tokens=TokensArgs(sequence_length=2048,\n"
      "[INFO|DP=0|PP=0|TP=0]:                          micro_batch_size=11,\n"
      "[INFO|DP=0|PP=0|TP=0]:                          batch_accumulation_per_replica=35,\n";
  const auto stated = profile_of_log(nanotron("1.54K", configuration), "nanotron", "");
  CHECK(stated.origin->gpus == 8);
  CHECK(stated.points[0].timed_sequences() == Approx(4.0 * 11 * 35 / 8));
  CHECK(stated.points[0].micro_batches == 35);
  // Below 1,000, three digits are exact.
  CHECK(profile_of_log(nanotron("768"), "nanotron", "--gpus 8").points[0].timed_sequences() == 96);
}
