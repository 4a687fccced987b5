// Tests of the scenario reader: defaults, overrides, alternatives and provenance.
#include <doctest/doctest.h>

#include <string>

#include "experiments/scenario/scenario_reader.hpp"
#include "tests/experiments/run_fomoe.hpp"

using namespace fomoe;
using namespace fomoe::tests;
using scenario::read_scenario;

namespace {

const std::string kPlatform = "[platform]\nsites = 4\nbandwidth = \"1Gbps\"\nlatency = \"25ms\"\n";
const std::string kStep = "[compute]\nstep_time = \"420ms\"\n";
const std::string kWork = "[workload]\ntokens = 1.34e9\nglobal_batch_sequences = 64\n";
const std::string kFomoe = "[strategy]\nmethod = \"fomoe\"\n";
const std::string kSmall = "[model]\npreset = \"small\"\n";

costmodel::Scenario read(const std::string& text, const scenario::ReadOptions& options = {}) {
  const Folder folder;
  write_all(folder / "s.toml", text);
  return read_scenario(folder / "s.toml", options);
}

costmodel::Scenario read_set(std::vector<std::string> overrides) {
  return read(kSmall + kWork + kFomoe + kStep + kPlatform, {std::move(overrides), std::nullopt, true});
}

}  // namespace

TEST_CASE("defaults: a missing key has the value in the table of keys") {
  const costmodel::Scenario s = read(kSmall + kWork + kFomoe + kStep + kPlatform);
  CHECK(s.seed == 42);
  CHECK(s.model == *costmodel::find_preset("small"));
  CHECK(s.workload.tokens == 1'340'000'000);  // 1.34e9 is a float in TOML, and we read it as a count
  CHECK(s.strategy.local_steps == 1);
  CHECK(s.strategy.expert_overlap == 4);  // the number of sites
  CHECK(s.strategy.placement == costmodel::PlacementKind::fixed);
  CHECK(s.strategy.reshuffle_rounds == 1);
  CHECK_FALSE(s.strategy.skip_token);
  CHECK(s.strategy.collective == costmodel::Collective::ring);
  CHECK(s.strategy.wire.type == costmodel::ElementType::bf16);
  CHECK(s.network.bandwidth_efficiency == 0.949);  // of a Linux host
  CHECK(s.network.initial_window_bytes == 14480);
  CHECK(std::get<costmodel::GivenStepTime>(s.compute).seconds == 0.42);
}

TEST_CASE("the platform is in bytes per second and in seconds, one way") {
  const costmodel::Scenario s = read(kSmall + kWork + kFomoe + kStep + kPlatform);
  CHECK(s.sites() == 4);
  CHECK(s.platform.sites[3].uplink_bytes_per_s == 125e6);  // 1 Gbit/s ÷ 8
  CHECK(s.platform.sites[3].downlink_bytes_per_s == 125e6);
  CHECK(s.platform.path(0, 3).latency_s == 0.025);
  REQUIRE(s.platform.provenance.size() == 2);
  CHECK(s.platform.provenance[0].origin == Origin::assumed);
  CHECK(s.platform.provenance[0].detail ==
        "given in the scenario: 1 Gbit/s up and 1 Gbit/s down at each of 4 sites");
}

TEST_CASE("uplink and downlink may differ, alone or together with bandwidth") {
  const costmodel::Scenario both =
      read(kSmall + kWork + kFomoe + kStep +
           "[platform]\nsites = 2\nuplink = \"80Mbps\"\ndownlink = \"8Gbps\"\nlatency = \"0s\"\n");
  CHECK(both.platform.sites[0].uplink_bytes_per_s == 1e7);
  CHECK(both.platform.sites[0].downlink_bytes_per_s == 1e9);
  CHECK(both.platform.path(0, 1).latency_s == 0);
  const costmodel::Scenario one = read_set({"platform.uplink=80Mbps"});
  CHECK(one.platform.sites[0].uplink_bytes_per_s == 1e7);
  CHECK(one.platform.sites[0].downlink_bytes_per_s == 125e6);
}

TEST_CASE("shape keys: alone, or with a preset, whose sequence length may change") {
  const std::string rest = kWork + kFomoe + kStep + kPlatform;
  const costmodel::Scenario own = read(
      "[model]\nd_model = 64\nlayers = 2\nheads = 4\nexperts = 8\nactive_experts = 2\nd_expert = "
      "16\nvocabulary = 100\n" +
      rest);
  CHECK(own.model == costmodel::ModelShape{"custom", 64, 2, 4, 8, 2, 16, 100, 2048});
  const costmodel::Scenario modified = read(kSmall + "layers = 3\n" + rest);
  CHECK(modified.model.name == "small-modified");
  CHECK(modified.model.layers == 3);
  CHECK(modified.model.d_model == 256);
  const costmodel::Scenario longer = read(kSmall + "sequence_length = 4096\n" + rest);
  CHECK(longer.model.name == "small");
  CHECK(longer.model.sequence_length == 4096);
}

TEST_CASE("--set: numbers, booleans, quoted and bare words, and keys that the file does not have") {
  const costmodel::Scenario s =
      read_set({"strategy.local_steps=64", "strategy.skip_token=true", "strategy.collective=direct",
                "strategy.payload_dtype=\"fp32\"", "workload.tokens=2e9",
                "network_model.bandwidth_efficiency=0.956", "seed=7", "platform.bandwidth=10 Gbps"});
  CHECK(s.strategy.local_steps == 64);
  CHECK(s.strategy.skip_token);
  CHECK(s.strategy.collective == costmodel::Collective::direct);
  CHECK(s.strategy.wire.type == costmodel::ElementType::fp32);
  CHECK(s.workload.tokens == 2'000'000'000);
  CHECK(s.network.bandwidth_efficiency == 0.956);  // the file has no [network_model]
  CHECK(s.seed == 7);
  CHECK(s.platform.sites[0].uplink_bytes_per_s == 1.25e9);
  CHECK(read_set({"seed=7", "seed=8"}).seed == 8);  // the last value wins
}

TEST_CASE("the caller's seed wins over the file and --set") {
  CHECK(read("seed = 5\n" + kSmall + kWork + kFomoe + kStep + kPlatform, {{"seed=6"}, 9, true}).seed == 9);
}

TEST_CASE("an override displaces the alternatives that the file uses") {
  const costmodel::Scenario device = read_set({"compute.peak_flops=989TFLOPS", "compute.mfu=0.4"});
  CHECK(std::get<costmodel::AssumedDevice>(device.compute).peak_flops == 989e12);
  CHECK(device.gpus.count == 1);
  const std::string profiled = "[compute]\nprofile = \"absent.json\"\nmicro_batch_sequences = 4\n";
  const costmodel::Scenario given =
      read(kSmall + kWork + kFomoe + profiled + kPlatform, {{"compute.step_time=1s"}, {}, true});
  CHECK(std::get<costmodel::GivenStepTime>(given.compute).seconds == 1);
  // A preset on the command line gives that preset, not the file's shape under the preset's name.
  const std::string shape = kSmall + "layers = 3\nsequence_length = 128\n";
  const costmodel::Scenario xxl =
      read(shape + kWork + kFomoe + kStep + kPlatform, {{"model.preset=xxl"}, {}, true});
  CHECK(xxl.model == *costmodel::find_preset("xxl"));
  // Two alternatives on the command line are still a mistake.
  CHECK_THROWS_AS(read_set({"compute.step_time=1s", "compute.mfu=0.4"}), FileError);
}

TEST_CASE("a missing profile is an error unless the caller is about to measure one") {
  const std::string text = kSmall + kWork + kFomoe + "[compute]\nprofile = \"absent.json\"\n" + kPlatform;
  CHECK_THROWS_AS(read(text), FileError);
  const costmodel::Scenario s = read(text, {{}, {}, false});
  CHECK(std::get<costmodel::ProfiledCompute>(s.compute).profile.points.empty());
  // All other keys are still checked.
  CHECK_THROWS_AS(read(text, {{"strategy.expert_overlap=7"}, {}, false}), FileError);
}
