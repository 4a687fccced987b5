// What a scenario may state about the run of an imported log: the part of the layers that was computed again,
// and the device.
#include <doctest/doctest.h>

#include <string>

#include "experiments/scenario/scenario_reader.hpp"
#include "tests/experiments/step_profiles/imported.hpp"

using namespace fomoe;
using namespace fomoe::tests;

namespace {

/// A log of torchtitan on 8 GPUs, whose activation checkpointing was `kind`.
void import_checkpointed(const Folder& folder, const std::string& kind) {
  std::string text =
      "[titan] - root - INFO - Building 1-D device mesh with ['dp_shard'], [8]\n"
      "[titan] - INFO - Applied " +
      kind +
      " activation checkpointing to the model\n"
      "[titan] - root - INFO - Trainer is initialized with local batch size 2, global batch size 16, "
      "gradient "
      "accumulation steps 1, sequence length 1024, total steps 100 (warmup 2)\n";
  for (const int step : {1, 10, 20, 30})
    text += "[titan] - root - INFO - step: " + std::to_string(step) +
            "  loss: 9.0  memory: 49.66GiB(52.28%)  tps: 4,096\n";
  const Ran ran = import_text(folder, text, "torchtitan", "--model small");
  REQUIRE_MESSAGE(ran.exit_status == 0, ran.err);
}

costmodel::Scenario of_profile(const Folder& folder, std::vector<std::string> more) {
  for (const std::string& key :
       {std::string("model.sequence_length=1024"), std::string("workload.global_batch_sequences=32"),
        std::string("compute.gpus_per_site=8"), std::string("compute.sharded=8"),
        "compute.profile=" + (folder / "p.json")})
    more.push_back(key);
  scenario::ReadOptions options;
  options.overrides = more;
  return scenario::read_scenario(kTwoSites, options);
}

std::string refused(const Folder& folder, const std::vector<std::string>& more) {
  try {
    (void)of_profile(folder, more);
  } catch (const FileError& error) {
    return error.what();
  } catch (const InputError& error) {
    return error.what();
  }
  return "accepted";
}

std::string note_of(const costmodel::Scenario& scenario, const std::string& what) {
  for (const Provenance& entry : scenario.catalogue)
    if (entry.what == what) return entry.detail;
  return "";
}

}  // namespace

TEST_CASE("selective checkpointing of a log: all layers are assumed, or the part that the scenario states") {
  using costmodel::SelectiveCheckpointing;
  const Folder folder;
  import_checkpointed(folder, "selective");
  const costmodel::Scenario assumed = of_profile(folder, {});
  CHECK(assumed.gpus.activation_checkpointing);
  CHECK(has(note_of(assumed, "activation memory"), "compute.selective_checkpointing states which part"));
  for (const std::vector<std::string>& keys :
       {std::vector<std::string>{"compute.selective_checkpointing=operators"},
        {"compute.selective_checkpointing=operators", "compute.activation_checkpointing=false"}}) {
    const costmodel::Scenario stated = of_profile(folder, keys);
    CHECK_FALSE(stated.gpus.activation_checkpointing);
    CHECK(stated.gpus.selective_checkpointing == SelectiveCheckpointing::operators);
    CHECK(note_of(stated, "activation memory").empty());
  }
  CHECK(has(refused(folder, {"compute.activation_checkpointing=false"}),
            "expected true, or the part of each layer in selective_checkpointing; for example "
            "--set compute.activation_checkpointing=true"));
}

TEST_CASE("full checkpointing of a log is not selective") {
  const Folder folder;
  import_checkpointed(folder, "full");
  CHECK(of_profile(folder, {}).gpus.activation_checkpointing);
  CHECK(has(refused(folder, {"compute.selective_checkpointing=operators"}),
            "compute.selective_checkpointing: got \"operators\", with a profile whose steps include full "
            "recomputation; expected \"none\", or no selective_checkpointing; for example "
            "selective_checkpointing = \"none\""));
  CHECK(of_profile(folder, {"compute.selective_checkpointing=none"}).gpus.activation_checkpointing);
}

TEST_CASE("step times of one device with the peak of another: a warning") {
  const Folder folder;
  import_checkpointed(folder, "full");  // on an H100
  const std::string command =
      "fomoe cost " + kTwoSites +
      " --set model.sequence_length=1024 --set workload.global_batch_sequences=32 --set "
      "compute.gpus_per_site=8 --set compute.profile=" +
      (folder / "p.json");
  const std::string warning =
      "the steps of the profile were timed on NVIDIA H100 80GB HBM3, and the peak rate";
  const auto said = [&](const std::string& more) {
    const Ran ran = run_in(folder.path(), command + more);
    CHECK_MESSAGE(ran.exit_status == 0, ran.err);
    return ran.out + ran.err;
  };
  CHECK_FALSE(has(said(""), warning));
  CHECK_FALSE(has(said(" --set compute.accelerator=H100-SXM"), warning));
  CHECK(has(said(" --set compute.accelerator=A100-80GB-SXM"), warning));
}
