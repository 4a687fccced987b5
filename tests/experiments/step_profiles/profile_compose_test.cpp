// Tests of composed profiles: the steps of a deep model from two shallow ones, linear in the layers and
// marked as computed.
#include <doctest/doctest.h>

#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "experiments/files/step_profile_io.hpp"
#include "tests/experiments/run_fomoe.hpp"

using namespace fomoe;
using namespace fomoe::tests;
using doctest::Approx;

namespace {

/// A profile of a model with `layers` layers. Forward, embedding and head take 10 ms and each layer 3 ms;
/// backward takes twice that; the optimiser takes 1 ms and 0.5 ms per layer. Memory is 1 GB and 0.1 GB per
/// layer. Of three samples only the median is regular.
costmodel::StepProfile of_depth(std::int64_t layers) {
  costmodel::StepProfile profile;
  profile.model = *costmodel::find_preset("small");
  profile.model.layers = layers;
  profile.device_kind = "cuda";
  profile.device_name = "a device";
  profile.dtype = "bf16";
  profile.versions = "none";
  profile.measured_at = "2025-01-02T03:04:05Z";
  const double depth = static_cast<double>(layers), forward = 0.010 + 0.003 * depth,
               optimizer = 0.001 + 0.0005 * depth;
  costmodel::ProfilePoint point{2, 8, false, 1'000'000'000 + 100'000'000 * layers, {}};
  for (const double noise : {1.0, 0.9, 1.7})
    point.samples.push_back({forward * noise, 2 * forward * noise, optimizer * noise});
  profile.points.push_back(point);
  return profile;
}

struct Files {
  Folder folder;
  Files() {
    write_all(folder / "2.json", scenario::step_profile_json(of_depth(2)));
    write_all(folder / "3.json", scenario::step_profile_json(of_depth(3)));
  }
  Ran compose(const std::string& options) const {
    return run_in(folder.path(), "fomoe profile compose " + options);
  }
};

}  // namespace

TEST_CASE(
    "t(L) = t(2) + (L - 2)(t(3) - t(2)): embedding and head once, each layer the difference of the two") {
  const Files files;
  const Ran ran = files.compose("2.json 3.json --layers 4 --output small.json");
  REQUIRE_MESSAGE(ran.exit_status == 0, ran.err);
  const auto profile = scenario::read_step_profile(files.folder / "small.json");
  REQUIRE(profile.points.size() == 1);
  // Each measured step gives a composed one, so that the spread is kept: the second and third are 0.9 and 1.7
  // times as long at either depth.
  REQUIRE(profile.points[0].samples.size() == 3);
  CHECK(profile.points[0].samples[1].forward_s == Approx(0.9 * (0.010 + 4 * 0.003)));
  CHECK(profile.points[0].samples[2].backward_s == Approx(1.7 * 2 * (0.010 + 4 * 0.003)));
  CHECK(profile.points[0].samples[0].forward_s == Approx(0.010 + 4 * 0.003));
  CHECK(profile.points[0].samples[0].backward_s == Approx(2 * (0.010 + 4 * 0.003)));
  CHECK(profile.points[0].samples[0].optimizer_s == Approx(0.001 + 4 * 0.0005));
  CHECK(profile.points[0].peak_memory_bytes == 1'400'000'000);

  // The preset has four layers, so that the profile is valid for it. The report says that the profile is
  // computed.
  const Ran simulated =
      run_in(files.folder.path(),
             "fomoe simulate " + source_dir() + "/tests/ideal/two-sites.toml --set compute.profile=" +
                 (files.folder / "small.json") + " --set strategy.expert_overlap=2 --output -");
  REQUIRE_MESSAGE(simulated.exit_status == 0, simulated.err);
  std::string said;
  const auto report = nlohmann::json::parse(simulated.out);
  for (const auto& entry : report["provenance"]) {
    if (entry["what"] == "step time")
      said = entry["origin"].get<std::string>() + ": " + entry["detail"].get<std::string>();
  }
  CAPTURE(said);
  CHECK(
      said.starts_with("computed: composed of 4 layers, extrapolated linearly from steps with 2 and 3 "
                       "layers: a device"));
}

TEST_CASE(
    "models whose layers are of several kinds are composed, and what counts layers follows their number") {
  const Folder folder;
  using costmodel::ModelShape;
  const auto dense = [](ModelShape& m) {
    m.architecture = "llama";
    m.experts = m.active_experts = m.d_expert = 0;
    m.dense_layers = m.layers;
    m.d_ffn = 128;
  };
  const auto windowed = [](ModelShape& m) {  // the last of every four layers sees the whole sequence
    m.architecture = "olmo3";
    m.window_tokens = 16;
    m.window_layers = m.layers - m.layers / 4;
  };
  const auto hybrid = [](ModelShape& m) {
    m.architecture = "qwen3_next";
    m.linear = costmodel::LinearAttention{.layers = m.layers - m.layers / 4, .key_heads = 2, .key_dim = 8};
  };
  const auto dense_first = [](ModelShape& m) {
    m.architecture = "deepseek_v3";
    m.dense_layers = 1;
    m.d_ffn = 128;
  };
  const auto every_second = [](ModelShape& m) {
    m.architecture = "llama4_text";
    m.d_ffn = 128;
    for (std::int64_t i = 1; i < m.layers; i += 2) m.moe_layer_list.push_back(i);
  };
  int i = 0;
  const std::vector<std::function<void(ModelShape&)>> kinds = {dense, windowed, hybrid, dense_first,
                                                               every_second};
  for (const auto& kind : kinds) {
    CAPTURE(i++);
    for (const std::int64_t layers : {4, 8}) {
      costmodel::StepProfile profile = of_depth(layers);
      kind(profile.model);
      write_all(folder / (std::to_string(layers) + ".json"), scenario::step_profile_json(profile));
    }
    const Ran ran = run_in(folder.path(), "fomoe profile compose 4.json 8.json --layers 16 --output 16.json");
    REQUIRE_MESSAGE(ran.exit_status == 0, ran.err);
    ModelShape expected = of_depth(16).model;
    kind(expected);
    expected.name = "custom";
    CHECK(scenario::read_step_profile(folder / "16.json").model == expected);
  }
  // A depth that has no whole number of windows: the message names the next one that has.
  for (const std::int64_t layers : {4, 8}) {
    costmodel::StepProfile profile = of_depth(layers);
    windowed(profile.model);
    write_all(folder / (std::to_string(layers) + ".json"), scenario::step_profile_json(profile));
  }
  const Ran refused = run_in(folder.path(), "fomoe profile compose 4.json 8.json --layers 17 --output -");
  CHECK(refused.exit_status == 2);
  CHECK(refused.err.find("--layers: got 17; expected a number at which the kinds of layers stand in the same "
                         "relation as among the 4 layers by which the profiles differ; for example --layers "
                         "20") != std::string::npos);
}

TEST_CASE("profiles that cannot be composed are refused with the reason") {
  const Files files;
  const auto err = [&](const std::string& options) {
    const Ran ran = files.compose(options + " --output -");
    CHECK(ran.exit_status == 2);
    return ran.err;
  };
  CHECK(err("3.json 2.json --layers 8")
            .find("profiles: got 3 and 2 layers; expected the shallow model first") != std::string::npos);
  CHECK(err("2.json 3.json --layers 2")
            .find("--layers: got 2; expected at least the 3 layers of the deeper profile") !=
        std::string::npos);
  CHECK(err("2.json --layers 8").find("expected two profiles, got 1") != std::string::npos);
  CHECK(err("2.json 3.json").find("--layers: got nothing; expected a whole number") != std::string::npos);
  auto other = of_depth(3);
  other.dtype = "fp32";
  write_all(files.folder / "fp32.json", scenario::step_profile_json(other));
  CHECK(err("2.json fp32.json --layers 8").find("a device in bf16 and a device in fp32") !=
        std::string::npos);
  other = of_depth(3);
  other.model.d_expert = 64;
  write_all(files.folder / "wide.json", scenario::step_profile_json(other));
  CHECK(err("2.json wide.json --layers 8").find("two models that differ in more than the number of layers") !=
        std::string::npos);
  other = of_depth(3);
  for (auto& sample : other.points[0].samples) sample.forward_s = 0.001;
  write_all(files.folder / "fast.json", scenario::step_profile_json(other));
  CHECK(err("2.json fast.json --layers 8").find("a negative time per layer with 2 sequences and 8 experts") !=
        std::string::npos);
  other = of_depth(3);
  other.points[0].local_experts = 4;
  write_all(files.folder / "four.json", scenario::step_profile_json(other));
  CHECK(err("2.json four.json --layers 8").find("profiles: got no point in common") != std::string::npos);
  REQUIRE(files.compose("2.json 3.json --layers 8 --output 8.json").exit_status == 0);
  CHECK(err("2.json 8.json --layers 16").find("composed or scaled already") != std::string::npos);
}
