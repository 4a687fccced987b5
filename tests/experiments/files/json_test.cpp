// Tests of step profiles and of files: a profile reads back as written, and mistakes are refused.
#include <doctest/doctest.h>
#include <sys/stat.h>

#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>

#include "experiments/files/step_profile_io.hpp"
#include "experiments/scenario/scenario_reader.hpp"
#include "platforms/support/atomic_file.hpp"
#include "tests/experiments/run_fomoe.hpp"

using namespace fomoe;
using namespace fomoe::tests;
using scenario::read_step_profile;
using scenario::step_profile_json;

namespace {

costmodel::StepProfile sample_profile() {
  costmodel::StepProfile profile;
  profile.model = {"custom", 64, 2, 4, 8, 2, 16, 100, 32};
  profile.device_kind = "cpu";
  profile.device_name = "a \"quoted\" device, 100 % µ";
  profile.threads = 2;
  profile.dtype = "fp32";
  profile.versions = "none";
  profile.measured_at = "2025-01-02T03:04:05Z";
  profile.points.push_back({4, 8, false, 123456789012, {{0.1, 0.2, 0.3}, {1.0 / 3, 2.0 / 3, 1e-9}}});
  profile.points.push_back({8, 4, true, 0, {{0, 5e-324, 1e300}}, 0.0625});
  return profile;
}

/// Returns the message about the sample profile after `change`, without the file's name.
std::string complaint(const std::function<void(nlohmann::json&)>& change) {
  const Folder folder;
  nlohmann::json json = nlohmann::json::parse(step_profile_json(sample_profile()));
  change(json);
  write_all(folder / "p.json", json.dump());
  try {
    (void)read_step_profile(folder / "p.json");
  } catch (const FileError& error) {
    return std::string(error.what()).substr((folder / "p.json").size());
  }
  return "accepted";
}

const std::string kRemedy = "; for example a file that `fomoe-train profile` wrote";

}  // namespace

TEST_CASE("a profile reads back exactly, to the last bit of every time") {
  const Folder folder;
  const costmodel::StepProfile written = sample_profile();
  write_all(folder / "p.json", step_profile_json(written));
  const costmodel::StepProfile read = read_step_profile(folder / "p.json");
  CHECK(read.model == written.model);
  CHECK(read.device_name == written.device_name);
  CHECK(read.threads == 2);
  CHECK(read.source == folder / "p.json");
  REQUIRE(read.points.size() == 2);
  CHECK(read.points[0].peak_memory_bytes == 123456789012);
  CHECK(read.points[1].skip_token);
  for (std::size_t p = 0; p < 2; ++p) {
    REQUIRE(read.points[p].samples.size() == written.points[p].samples.size());
    for (std::size_t i = 0; i < read.points[p].samples.size(); ++i) {
      CHECK(read.points[p].samples[i].forward_s == written.points[p].samples[i].forward_s);
      CHECK(read.points[p].samples[i].backward_s == written.points[p].samples[i].backward_s);
      CHECK(read.points[p].samples[i].optimizer_s == written.points[p].samples[i].optimizer_s);
    }
  }
}

TEST_CASE("wrong profiles: the message has the key, its value and the expected one") {
  using J = nlohmann::json;
  CHECK(complaint([](J&) {}) == "accepted");
  CHECK(complaint([](J& j) { j["schema"] = "fomoe.run/1"; }) ==
        ":1: schema: got \"fomoe.run/1\"; expected \"fomoe.step-profile/1\" or \"fomoe.step-profile/2\"" +
            kRemedy);
  CHECK(complaint([](J& j) { j.erase("schema"); }) ==
        ":1: schema: got nothing; expected \"fomoe.step-profile/1\" or \"fomoe.step-profile/2\"" + kRemedy);
  CHECK(complaint([](J& j) { j = 3; }) ==
        ":1: schema: got nothing; expected \"fomoe.step-profile/1\" or \"fomoe.step-profile/2\"" + kRemedy);
  CHECK(complaint([](J& j) { j.erase("dtype"); }) == ": dtype: got nothing; expected a string" + kRemedy);
  CHECK(complaint([](J& j) {
          j["colour"] = 1;
        }).starts_with(": colour: got an unknown key; expected one of schema, "));
  CHECK(complaint([](J& j) { j["threads"] = -1; }) ==
        ": threads: got -1; expected a whole number of at least 0" + kRemedy);
  CHECK(complaint([](J& j) { j["model"]["layers"] = 1.5; }) ==
        ": model.layers: got 1.5; expected a whole number of at least 1" + kRemedy);
  CHECK(complaint([](J& j) { j["points"] = J::array(); }) ==
        ": points: got an empty array; expected an array with at least one entry" + kRemedy);
  CHECK(complaint([](J& j) { j["points"][1]["samples"] = J::array(); }) ==
        ": points[1].samples: got an empty array; expected an array with at least one entry" + kRemedy);
  CHECK(complaint([](J& j) { j["points"][0]["samples"][1]["forward_s"] = -0.5; }) ==
        ": points[0].samples[1].forward_s: got -0.5; expected seconds of zero or more" + kRemedy);
  CHECK(complaint([](J& j) { j["points"][0]["samples"][1]["forward_s"] = nullptr; }) ==
        ": points[0].samples[1].forward_s: got null; expected seconds of zero or more" + kRemedy);
  CHECK(complaint([](J& j) { j["points"][0]["samples"][0].erase("backward_s"); }) ==
        ": points[0].samples[0].backward_s: got nothing; expected seconds of zero or more" + kRemedy);
  CHECK(complaint([](J& j) { j["points"][0]["skip_token"] = 0; }) ==
        ": points[0].skip_token: got 0; expected true or false" + kRemedy);
}

TEST_CASE("text that is not JSON is refused with its line, and so is a number out of range") {
  const Folder folder;
  write_all(folder / "p.json", "{\n  \"schema\": \"fomoe.step-profile/1\",\n  oops\n}\n");
  CHECK_THROWS_WITH(read_step_profile(folder / "p.json"),
                    ((folder / "p.json") +
                     ":3: profile: got text that is not valid JSON; expected a step profile" + kRemedy)
                        .c_str());
  write_all(folder / "p.json", "{\"schema\": 1e999}");
  CHECK_THROWS_AS(read_step_profile(folder / "p.json"), FileError);
  CHECK_THROWS_AS(read_step_profile(folder / "absent.json"), FileError);
  CHECK_THROWS_AS(read_step_profile(folder.path()), FileError);
}

TEST_CASE("write_file replaces the whole file and leaves no temporary file") {
  const Folder folder;
  write_file(folder / "a.json", "first");
  write_file(folder / "a.json", "second");
  CHECK(read_all(folder / "a.json") == "second");
  CHECK(std::distance(std::filesystem::directory_iterator(folder.path()), {}) == 1);
}

TEST_CASE("write_file leaves nothing behind if it fails, and never replaces something that is not a file") {
  const Folder folder;
  CHECK_THROWS_AS(write_file(folder / "no/a.json", "text"), std::runtime_error);
  std::filesystem::create_directory(folder / "a.json");
  CHECK_THROWS_AS(write_file(folder / "a.json", "text"), std::runtime_error);
  REQUIRE(mkfifo((folder / "pipe.json").c_str(), 0600) == 0);
  CHECK_THROWS_AS(write_file(folder / "pipe.json", "text"), std::runtime_error);
  CHECK(std::filesystem::is_fifo(folder / "pipe.json"));
  CHECK(std::distance(std::filesystem::directory_iterator(folder.path()), {}) == 2);
}

TEST_CASE("write_file through a symbolic link writes to the link's target") {
  const Folder folder;
  write_all(folder / "real.json", "old");
  std::filesystem::create_symlink("real.json", folder / "link.json");
  write_file(folder / "link.json", "new");
  CHECK(std::filesystem::is_symlink(folder / "link.json"));
  CHECK(read_all(folder / "real.json") == "new");
}

TEST_CASE(
    "a scenario runs on its profile, and a profile of another model or batch is refused with its line") {
  const Folder folder;
  write_all(folder / "p.json", step_profile_json(sample_profile()));
  const std::string scenario =
      "[model]\nd_model = 64\nlayers = 2\nheads = 4\nexperts = 8\nactive_experts = 2\nd_expert = "
      "16\nvocabulary = 100\n"
      "sequence_length = 32\n[workload]\ntokens = 1e5\nglobal_batch_sequences = 16\n[strategy]\nmethod = "
      "\"diloco\"\n"
      "[compute]\nprofile = \"p.json\"\nmicro_batch_sequences = 4\n"
      "[platform]\nsites = 2\nbandwidth = \"1Gbps\"\nlatency = \"1ms\"\n";
  write_all(folder / "s.toml", scenario);
  const std::string simulate = "fomoe simulate s.toml --output - ";
  const Ran good = run_in(folder.path(), simulate);
  CHECK_MESSAGE(good.exit_status == 0, good.err);
  const nlohmann::json run = nlohmann::json::parse(good.out);
  CHECK(run["provenance"][0]["what"] == "step time");
  CHECK(run["provenance"][0]["origin"] == "measured");
  CHECK(run["scenario"]["compute"]["micro_batch_sequences"] == 4);

  const Ran other_model = run_in(folder.path(), simulate + "--set model.layers=3");
  CHECK(other_model.exit_status == 2);
  CHECK(other_model.err.starts_with("s.toml:16: compute.profile: got step times of another model"));
  const Ran other_batch = run_in(folder.path(), simulate + "--set compute.micro_batch_sequences=2");
  CHECK(other_batch.exit_status == 2);
  CHECK(other_batch.err.starts_with("s.toml:16: compute.profile: got no measured step of 2 sequences"));
}
