// The model of an import: only [model] of a scenario is read, and the parameters that the log states are
// compared.
#include <doctest/doctest.h>

#include "costmodel/inputs/model_shape.hpp"
#include "tests/experiments/step_profiles/imported.hpp"

using namespace fomoe;
using namespace fomoe::tests;

namespace {

const std::int64_t kSmall = costmodel::count_parameters(*costmodel::find_preset("small")).total();

std::string commas(std::int64_t number) {
  std::string text = std::to_string(number);
  for (std::size_t at = text.size(); at > 3;) text.insert(at -= 3, ",");
  return text;
}

std::string titan(std::int64_t parameters) {
  return "[titan] - root - INFO - Model moe small size: " + commas(parameters) +
         " total parameters\n"
         "step: 1  tps: 512\nstep: 10  tps: 512\nstep: 20  tps: 512\n";
}

std::string megatron(const std::string& facts) {
  std::string text = facts;
  for (int i = 1; i <= 5; ++i)
    text += " iteration " + std::to_string(i) +
            "/ 100 | elapsed time per iteration (ms): 500.0 | global batch size: 8 |\n";
  return text;
}

const std::string kRun = "--gpus 8 --sequences-per-step 8 ";

}  // namespace

TEST_CASE("a log of another model is refused with both numbers, and the proposed preset works") {
  CHECK(profile_of_log(titan(kSmall), "torchtitan", kRun).model.name == "small");
  CHECK(profile_of_log(titan(kSmall + kSmall / 100), "torchtitan", kRun).model.name == "small");
  const std::string other = refusal(titan(kSmall + kSmall / 40), "torchtitan", kRun);
  CHECK(other.starts_with("a.log:1: parameters: got " + commas(kSmall + kSmall / 40) + " in the log and " +
                          commas(kSmall) + " in the model small; expected the model that was trained"));
  const std::string medium = refusal(titan(kSmall), "torchtitan", kRun + "--model medium");
  CHECK(proposal(medium) == "--model small");
  CHECK(profile_of_log(titan(kSmall), "torchtitan", kRun + proposal(medium)).model.name == "small");
}

TEST_CASE("numbers of other programs: ranks of Megatron-LM, three digits of nanotron, billions of MaxText") {
  const std::string half = std::to_string(kSmall / 2);
  const std::string rank = " > number of parameters on (tensor, pipeline) model parallel rank ";
  CHECK(profile_of_log(megatron(rank + "(0, 0): " + std::to_string(kSmall) + "\n"), "megatron", kRun)
            .model.name == "small");
  const std::string two =
      "  tensor_model_parallel_size ...................... 2\n"
      "  pipeline_model_parallel_size .................... 1\n";
  CHECK(profile_of_log(megatron(two + rank + "(0, 0): " + half + "\n" + rank + "(1, 0): " + half + "\n"),
                       "megatron", kRun)
            .model.name == "small");
  CHECK(refusal(megatron(rank + "(0, 0): 124439808\n"), "megatron", kRun).find("124,439,808 in the log") !=
        std::string::npos);
  CHECK(refusal(megatron("  tensor_model_parallel_size ...................... 2\n"
                         "  pipeline_model_parallel_size .................... 1\n" +
                         rank + "(0, 0): 62219904\n" + rank + "(1, 0): 62219904\n"),
                "megatron", kRun)
            .find("124,439,808 in the log") != std::string::npos);
  // An excerpt may have the first of many ranks, but no rank has more than the model.
  CHECK(profile_of_log(megatron(rank + "(0, 0): " + std::to_string(kSmall / 8) + "\n"), "megatron", kRun)
            .model.name == "small");
  std::string nanotron = "[INFO|DP=0|PP=0|TP=0]: Total number of parameters: 1.04G (1985.23MiB)\n";
  for (int i = 1; i <= 5; ++i)
    nanotron += "iteration: " + std::to_string(i) +
                " / 100 | elapsed_time_per_iteration_ms: 845 | global_batch_size: 64 |\n";
  CHECK(refusal(nanotron, "nanotron", "--gpus 8 ").find("1,040,000,000 in the log") != std::string::npos);
  const std::string maxtext =
      "number parameters: 15.933 billion\ncompleted step: 0, seconds: 2.0\ncompleted step: 1, seconds: 2.0\n"
      "completed step: 2, seconds: 2.0\ncompleted step: 3, seconds: 2.0\n";
  CHECK(refusal(maxtext, "maxtext", kRun).find("15,933,000,000 in the log") != std::string::npos);
}

TEST_CASE("only [model] of the scenario is read: neither its other tables nor the profile that is written") {
  const Folder folder;
  write_all(folder / "mine.toml",
            "[model]\npreset = \"small\"\n[compute]\nprofile = \"p.json\"\naccelerator = \"no such card\"\n"
            "[platform]\nfile = \"missing.toml\"\n[strategy]\nlocal_step = 3\n");
  write_all(folder / "a.log", titan(kSmall));
  const std::string import =
      "fomoe profile import a.log --from torchtitan --scenario mine.toml --output p.json " + kUnstated + kRun;
  const Ran ran = run_in(folder.path(), import);
  REQUIRE_MESSAGE(ran.exit_status == 0, ran.err);
  CHECK(run_in(folder.path(), import + "--set model.preset=medium").err.find("in the model medium") !=
        std::string::npos);
  // [model] itself is read strictly.
  write_all(folder / "mine.toml", "[model]\npreset = \"small\"\nlayer = 3\n");
  CHECK(run_in(folder.path(), import).err.starts_with("mine.toml:3: model.layer: "));
}
