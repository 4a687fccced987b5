// The micro-batch is that of the log, whatever the batch of a step is.
#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "tests/experiments/step_profiles/imported.hpp"

using namespace fomoe;
using namespace fomoe::tests;
using doctest::Approx;

namespace {

// 128 sequences on 8 GPUs are 16 for each, in 8 passes of two: 16 · 1,024 tokens at 4,096 tokens/s take 4 s.
std::string accumulating(const std::string& steps = "gradient accumulation steps 8") {
  std::string text =
      "[titan] - root - INFO - Building 1-D device mesh with ['dp_shard'], [8]\n"
      "[titan] - root - INFO - Trainer is initialized with local batch size 2, global batch size 128, " +
      steps + ", sequence length 1024, total steps 100 (warmup 2)\n";
  for (const int step : {1, 10, 20, 30})
    text += "[titan] - root - INFO - step: " + std::to_string(step) +
            "  loss: 9.0  memory: 49.66GiB(52.28%)  tps: 4,096\n";
  return text;
}

std::string simulate(const std::string& profile, const std::string& batch, const std::string& more = "") {
  return " " + source_dir() +
         "/tests/ideal/two-sites.toml --set model.sequence_length=1024 "
         "--set workload.global_batch_sequences=" +
         batch + " --set compute.gpus_per_site=8 --set compute.profile=" + profile + " --output - " + more;
}

}  // namespace

TEST_CASE("torchtitan: local batch size and accumulation steps") {
  const auto profile = profile_of_log(accumulating(), "torchtitan", "");
  REQUIRE(profile.points.size() == 1);
  CHECK(profile.points[0].micro_batch_sequences == 2);
  CHECK(profile.points[0].micro_batches == 8);
  CHECK(profile.points[0].sequences_per_gpu == 16);
  CHECK(step_of(profile) == Approx(4.0));
  // Another spelling of the same version.
  CHECK(profile_of_log(accumulating("gradient_accumulation_steps: 8"), "torchtitan", "")
            .points[0]
            .micro_batches == 8);
  // The user corrects the log.
  const auto corrected = profile_of_log(accumulating(), "torchtitan", "--micro-batch-sequences 4");
  CHECK(corrected.points[0].micro_batch_sequences == 4);
  CHECK(corrected.points[0].micro_batches == 4);
  CHECK(step_of(corrected) == Approx(4.0));
  CHECK(proposal(refusal(accumulating(), "torchtitan", "--micro-batch-sequences 129")) ==
        "--micro-batch-sequences 1");
}

TEST_CASE("Megatron-LM: micro_batch_size and the degrees of the list of arguments") {
  // 64 GPUs with t = 8 and p = 4 are 2 replicas; 128 sequences are 64 for each, in 16 micro-batches of 4.
  std::string text =
      "using world size: 64, data-parallel size: 2, context-parallel size: 1, tensor-model-parallel size: 8, "
      "pipeline-model-parallel size: 4\n"
      "  micro_batch_size ................................ 4\n"
      "  pipeline_model_parallel_size .................... 4\n"
      "  seq_length ...................................... 2048\n"
      "  tensor_model_parallel_size ...................... 8\n"
      "  world_size ...................................... 64\n";
  for (int i = 1; i <= 6; ++i)
    text += " iteration " + std::to_string(i) +
            "/ 100 | elapsed time per iteration (ms): 500.0 | global batch size:   128 |\n";
  const auto profile = profile_of_log(text, "megatron", "");
  CHECK(profile.origin->gpus == 64);
  CHECK(profile.origin->tensor_parallel == 8);
  CHECK(profile.origin->pipeline_parallel == 4);
  CHECK(profile.points[0].micro_batch_sequences == 4);
  CHECK(profile.points[0].micro_batches == 16);
  CHECK(profile.points[0].sequences_per_gpu == 2);
}

TEST_CASE(
    "a scenario scales steps with accumulation by the sequences of a GPU, and its memory has one "
    "micro-batch") {
  const Folder folder;
  REQUIRE(import_text(folder, accumulating(), "torchtitan", "--model small").exit_status == 0);
  const auto answer = [&](const std::string& command, const std::string& arguments) {
    const Ran ran = run_in(folder.path(), "fomoe " + command + arguments);
    REQUIRE_MESSAGE(ran.exit_status == 0, ran.err);
    return nlohmann::json::parse(ran.out);
  };
  const auto step_s = [&](const std::string& batch, const std::string& more) {
    const auto report = answer("simulate", simulate(folder / "p.json", batch, more));
    return report["round"]["compute_s"].get<double>() * report["round"]["count"].get<double>() /
           report["optimizer_steps"].get<double>();
  };
  CHECK(step_s("256", "") == Approx(4.0).epsilon(1e-3));  // 128 sequences at each of the two sites
  CHECK(step_s("64", "") == Approx(1.0).epsilon(1e-3));   // the last round is shorter
  CHECK(step_s("256", "--set compute.micro_batch_sequences=1") ==
        Approx(4.0));  // the time is that of the log
  const auto memory = [&](const std::string& more) {
    return answer("cost", simulate(folder / "p.json", "256", more))["memory"]["activations_bytes"]
        .get<double>();
  };
  CHECK(memory("") > 0);
  CHECK(memory("") == Approx(2 * memory("--set compute.micro_batch_sequences=1")).epsilon(0.1));
  const auto corrected =
      answer("cost", simulate(folder / "p.json", "256", "--set compute.micro_batch_sequences=1"));
  bool said = false;
  for (const auto& entry : corrected["provenance"])
    said = said || entry["detail"] ==
                       "1 sequences, from compute.micro_batch_sequences; the log has 2, and the step time "
                       "stays that of the log";
  CHECK(said);
}

TEST_CASE("a log that does not state its micro-batch has none: its share of the batch may be several") {
  const std::string steps = "step: 1  tps: 4,096\nstep: 10  tps: 4,096\nstep: 20  tps: 4,096\n";
  const Folder folder;
  const Ran ran = import_text(folder, steps, "torchtitan",
                              "--model small --gpus 8 --sequences-per-step 128 --sequence-length 1024");
  REQUIRE_MESSAGE(ran.exit_status == 0, ran.err);
  CHECK(ran.err.starts_with("note: the log does not state the micro-batch"));
  CHECK(scenario::read_step_profile(folder / "p.json").points[0].micro_batch_sequences == 0);
  const auto cost = [&](const std::string& more) {
    return nlohmann::json::parse(
        run_in(folder.path(), "fomoe cost" + simulate(folder / "p.json", "256", more)).out);
  };
  CHECK(cost("")["memory"]["activations_bytes"] == 0);
  CHECK(cost("--set compute.micro_batch_sequences=2")["memory"]["activations_bytes"] > 0);
}

TEST_CASE("profiles of the first version are read, and others written with the second") {
  const auto written = scenario::step_profile_json(profile_of_log(accumulating(), "torchtitan", ""));
  CHECK(written.find("\"schema\": \"fomoe.step-profile/2\"") != std::string::npos);
  auto profile = scenario::parse_step_profile(written, "p.json");
  CHECK(profile.points[0].sequences_per_gpu == 16);
  CHECK(profile.points[0].memory_counter == costmodel::MemoryCounter::reserved);
  profile.points[0].sequences_per_gpu.reset();
  const auto first = scenario::step_profile_json(profile);
  CHECK(first.find("\"schema\": \"fomoe.step-profile/1\"") != std::string::npos);
  CHECK(scenario::parse_step_profile(first, "p.json").points[0].timed_sequences() == 2);
}

TEST_CASE("the micro-batch that an earlier version assumed is not taken for the log's, and can be given") {
  const Folder folder;
  auto profile = profile_of_log(accumulating(), "torchtitan", "");
  profile.points[0].micro_batch_sequences = 16;  // a GPU's share of the batch
  profile.points[0].sequences_per_gpu.reset();
  write_all(folder / "p.json", scenario::step_profile_json(profile));
  const auto said = [&](const std::string& more) {
    const Ran ran = run_in(folder.path(), "fomoe cost" + simulate(folder / "p.json", "256", more));
    REQUIRE_MESSAGE(ran.exit_status == 0, ran.err);
    return ran.out;
  };
  CHECK(said("").find("its import by an earlier version does not state it; import the log again") !=
        std::string::npos);
  // Activations of 16 sequences would not fit, where the run of the log had 2.
  CHECK(nlohmann::json::parse(said(""))["memory"]["activations_bytes"] == 0);
  const std::string given = said("--set compute.micro_batch_sequences=2");
  CHECK(given.find("2 sequences, from compute.micro_batch_sequences; the log does not state it") !=
        std::string::npos);
  CHECK(nlohmann::json::parse(given)["memory"]["activations_bytes"] > 0);
}
