// Memory figures of a log stand beside the computed memory.
#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "tests/experiments/step_profiles/imported.hpp"

using namespace fomoe;
using namespace fomoe::tests;
using doctest::Approx;

namespace {

std::string steps_with(const std::string& memory, int last = 5) {
  std::string text =
      "  world_size ...................................... 8\n  micro_batch_size "
      "................................ 1\n";
  for (int i = 1; i <= last; ++i)
    text += " iteration " + std::to_string(i) +
            "/ 100 | elapsed time per iteration (ms): 500.0 | global batch size: 8 |\n" +
            (i == 2 ? memory : "");
  return text;
}

}  // namespace

TEST_CASE("Megatron-LM: the fullest rank's allocated peak, in MiB") {
  const auto profile = profile_of_log(steps_with("[Rank 0] (after 2 iterations) memory (MB) | allocated: "
                                                 "3270.16 | max allocated: 5670.5 | reserved: 6406.00 | max "
                                                 "reserved: 6406.00\n"
                                                 "[Rank 4] (after 2 iterations) memory (MB) | allocated: "
                                                 "3270.16 | max allocated: 5800.0 | reserved: 6606.00 | max "
                                                 "reserved: 6606.00\n"),
                                      "megatron", "");
  CHECK(profile.points[0].peak_memory_bytes == std::int64_t{5800} * 1048576);
  CHECK(profile.points[0].memory_counter == costmodel::MemoryCounter::allocated);
}

TEST_CASE(
    "the answer of fomoe cost has the log's memory beside the computed one, of the framework that logged "
    "it") {
  const Folder folder;
  std::string text =
      "[titan] - root - INFO - Trainer is initialized with local batch size 1, global batch size 8, gradient "
      "accumulation "
      "steps 1, sequence length 1024, total steps 100 (warmup 2)\n";
  for (const int step : {1, 10, 20, 30})
    text += "[titan] - root - INFO - step: " + std::to_string(step) +
            "  loss: 9.0  memory: 12.50GiB(15.80%)  tps: 4,096\n";
  const Ran import = import_text(folder, text, "torchtitan", "--model small --gpus 8");
  REQUIRE_MESSAGE(import.exit_status == 0, import.err);
  const std::string cost = "fomoe cost " + source_dir() +
                           "/tests/ideal/two-sites.toml --set model.sequence_length=1024 "
                           "--set compute.gpus_per_site=8 --set compute.profile=" +
                           (folder / "p.json");
  const Ran json = run_in(folder.path(), cost + " --output -");
  REQUIRE_MESSAGE(json.exit_status == 0, json.err);
  const auto answer = nlohmann::json::parse(json.out);
  CHECK(answer["logged_memory"]["bytes_per_gpu"].get<double>() == 12.5 * 0x1p30);
  CHECK(answer["logged_memory"]["counter"] == "reserved");
  CHECK(answer["scenario"]["compute"]["stack"] == "torchtitan");
  const Ran people = run_in(folder.path(), cost);
  CHECK(people.out.find("reserved according to the log") != std::string::npos);
  CHECK(people.out.find("reserved by the allocator") != std::string::npos);
}
