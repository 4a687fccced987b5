// The shape of a model in a file that fomoe writes can be read, and is the same model.
#include <doctest/doctest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "experiments/files/step_profile_io.hpp"
#include "experiments/model_files/hf_config.hpp"
#include "experiments/scenario/scenario_reader.hpp"
#include "platforms/support/input_error.hpp"
#include "tests/experiments/run_fomoe.hpp"

using namespace fomoe;
using namespace fomoe::tests;
using costmodel::ModelShape;

namespace {

/// The model of a scenario with these keys in its table [model].
ModelShape by_keys(const Folder& folder, const std::string& keys) {
  write_all(folder / "s.toml",
            "[model]\nd_model = 64\nlayers = 2\nheads = 4\nvocabulary = 100\nsequence_length = 32\n" + keys +
                "[workload]\ntokens = 1e7\nglobal_batch_sequences = 64\n[strategy]\nmethod = "
                "\"diloco\"\nlocal_steps = 4\n[compute]\nstep_time = \"1s\"\n[platform]\nsites = "
                "2\nbandwidth = \"1Gbps\"\nlatency = \"20ms\"\n");
  return scenario::read_scenario(folder / "s.toml").model;
}

std::string profile_text(const ModelShape& model) {
  costmodel::StepProfile profile;
  profile.model = model;
  profile.device_kind = "cuda";
  profile.device_name = "a device";
  profile.dtype = "bf16";
  profile.versions = "none";
  profile.measured_at = "2025-01-02T03:04:05Z";
  costmodel::ProfilePoint point;
  point.micro_batch_sequences = 1;
  point.local_experts = model.experts;
  point.samples = {{1, 2, 0.1}};
  profile.points.push_back(point);
  return scenario::step_profile_json(profile);
}

}  // namespace

TEST_CASE(
    "a profile of any model can be read: presets, models by keys with and without experts, config files") {
  const Folder folder;
  std::vector<ModelShape> models = costmodel::presets();
  models.push_back(by_keys(folder, "experts = 0\nd_ffn = 128\n"));
  models.push_back(by_keys(folder, "experts = 4\nactive_experts = 2\nd_expert = 32\n"));
  for (const auto& entry : std::filesystem::directory_iterator(source_dir() + "/experiments/models")) {
    if (entry.path().extension() != ".json") continue;
    models.push_back(scenario::read_hf_config(entry.path().string()));
    models.back().sequence_length = 64;
  }
  CHECK(models.size() > 15);
  for (const ModelShape& model : models) {
    CAPTURE(model.name);
    CAPTURE(model.architecture);
    write_all(folder / "p.json", profile_text(model));
    CHECK(scenario::read_step_profile(folder / "p.json").model == model);
  }
  // A model of the paper's family whose layers are not dense has experts.
  ModelShape wrong = costmodel::presets().front();
  wrong.experts = wrong.active_experts = 0;
  write_all(folder / "p.json", profile_text(wrong));
  CHECK_THROWS_AS((void)scenario::read_step_profile(folder / "p.json"), FileError);
}
