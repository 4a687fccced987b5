// Tests the profiler and its command.
#include "trainer/step/profile.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <sstream>
#include <thread>

#include "experiments/files/step_profile_io.hpp"
#include "experiments/scenario/scenario_reader.hpp"
#include "platforms/support/atomic_file.hpp"
#include "tests/trainer/support.hpp"
#include "trainer/commands/profile_command.hpp"
#include "trainer/commands/synchronisation_profile.hpp"
#include "trainer/device/device_info.hpp"

using namespace fomoe::trainer;
using namespace fomoe::trainer::testing;
namespace costmodel = fomoe::costmodel;

namespace {

const std::string kProgram = FOMOE_BINARY_DIR "/fomoe-train";

int exit_code(const std::string& arguments) {
  const int status = std::system((kProgram + " " + arguments + " >/dev/null 2>&1").c_str());
  return WEXITSTATUS(status);
}

}  // namespace

TEST_CASE("a profile has every setting, each with its samples, and reads back as written") {
  ProfileOptions options;
  options.model = tiny_shape();
  options.local_experts = {1, 4};
  options.micro_batch_sequences = {1, 3};
  options.skip_token = true;
  options.steps = 5;
  options.warmup = 1;
  std::ostringstream progress;
  costmodel::StepProfile profile = measure_profile(options, progress);
  CHECK(profile.model == tiny_shape());
  CHECK(profile.device_kind == "cpu");
  CHECK(profile.dtype == "fp32");
  CHECK(!profile.device_name.empty());
  CHECK(profile.threads >= 1);
  REQUIRE(profile.points.size() == 4);
  for (std::size_t i = 0; i < 4; ++i) {
    const costmodel::ProfilePoint& point = profile.points[i];
    CHECK(point.micro_batch_sequences == (i < 2 ? 1 : 3));
    CHECK(point.local_experts == (i % 2 == 0 ? 1 : 4));
    CHECK(point.skip_token);
    CHECK(point.peak_memory_bytes > 1'000'000);
    CHECK(point.samples.size() == 5);
    for (const costmodel::StepSample& sample : point.samples) {
      CHECK(sample.forward_s > 0);
      CHECK(sample.backward_s > 0);
      CHECK(sample.optimizer_s > 0);
    }
  }
  const std::string path = FOMOE_BINARY_DIR "/trainer-test-profile.json";
  fomoe::write_file(path, fomoe::scenario::step_profile_json(profile));
  const costmodel::StepProfile read = fomoe::scenario::read_step_profile(path);
  CHECK(read.points[3].samples[4].backward_s == profile.points[3].samples[4].backward_s);
  CHECK(read.points[3].peak_memory_bytes == profile.points[3].peak_memory_bytes);
  CHECK(read.measured_at == profile.measured_at);
  std::remove(path.c_str());
}

TEST_CASE("a spent time budget still leaves three samples, and says so") {
  ProfileOptions options;
  options.model = tiny_shape();
  options.local_experts = {4};
  options.micro_batch_sequences = {1};
  options.time_budget_s = 0;
  std::ostringstream progress;
  CHECK(measure_profile(options, progress).points.front().samples.size() == 3);
  CHECK(progress.str().find("after 3 of 20 steps") != std::string::npos);
}

TEST_CASE("a point is doubtful if its threads waited, or if the middle half of its steps spreads widely") {
  costmodel::ProfilePoint point{1, 4, false, 0, {}};
  for (const double step_s : {1.0, 1.1, 1.0, 1.05, 36.0}) point.samples.push_back({step_s, 0, 0});
  CHECK(!doubtful(point));  // a single long step does not move the median
  for (int i = 0; i < 3; ++i) point.samples.push_back({36.0, 0, 0});
  CHECK(doubtful(point));
  point.samples.resize(4);
  point.waited_share = 0.04;
  CHECK(!doubtful(point));
  point.waited_share = 0.2;
  CHECK(doubtful(point));
}

TEST_CASE(
    "a point says for how long its threads waited; a device that is shared on purpose keeps its times") {
  ProfileOptions options;
  options.model = tiny_shape();
  options.local_experts = {1, 4};
  options.micro_batch_sequences = {1};
  options.steps = 3;
  options.time_budget_s = 0.4;
  options.threads = 1;
  std::ostringstream progress;
  const costmodel::StepProfile alone = measure_profile(options, progress);
  CHECK(!alone.shared_device);
  REQUIRE(alone.points.front().waited_share);
  CHECK(*alone.points.front().waited_share >= 0);
  // More threads than cores wait for each other, on purpose. Each point takes its whole time, so that
  // processes that started together are at the same point, and no point is measured again when others have
  // ended.
  const auto cores = static_cast<int>(std::thread::hardware_concurrency());
  options.threads = 8 * std::max(1, cores);
  options.shared_device = true;
  progress.str("");
  const auto begin = std::chrono::steady_clock::now();
  costmodel::StepProfile shared = measure_profile(options, progress);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  CHECK(took.count() >= 2 * options.time_budget_s);
  CHECK(progress.str().find("again") == std::string::npos);
  CHECK(shared.shared_device);
  for (const costmodel::ProfilePoint& point : shared.points) {
    REQUIRE(point.waited_share);
    CHECK(*point.waited_share > 0.05);
    CHECK(doubtful(point));
  }
  CHECK(costmodel::disturbed_text(shared).empty());
  // What is predicted from the file says so.
  const std::string path = FOMOE_BINARY_DIR "/trainer-test-shared-profile.json";
  fomoe::write_file(path, fomoe::scenario::step_profile_json(shared));
  costmodel::StepProfile read = fomoe::scenario::read_step_profile(path);
  std::remove(path.c_str());
  CHECK(read.shared_device);
  CHECK(read.points.front().waited_share == shared.points.front().waited_share);
  read.points.front().device_waited_share = 0.5;
  const costmodel::StepEstimate step = costmodel::estimate_step(read, 1, 1, false);
  const std::string said = costmodel::step_provenance(read, step).front().detail;
  CHECK(said.find("timed while other processes shared the device on purpose; threads waited for a core ") !=
        std::string::npos);
  CHECK(said.find("steps for the device at least 50 % of it") != std::string::npos);
}

TEST_CASE("a synchronisation is timed in each format, with the experts that the site holds") {
  ProfileOptions options;
  options.model = tiny_shape();
  options.local_experts = {1, 2};
  std::ostringstream progress;
  const auto small = measure_synchronisation(options, progress);
  REQUIRE(small);
  REQUIRE(small->payload_rates.size() == 4);
  for (const auto& [dtype, bytes_per_s] : small->payload_rates) CHECK(bytes_per_s > 1e3);
  REQUIRE(small->sparse);
  for (const double seconds : {small->sparse->choose_s_per_element, small->sparse->add_s_per_element}) {
    CHECK(seconds > 0);
    CHECK(seconds < 1e-4);
  }
  CHECK(small->outer_step_s_per_parameter > 0);
  CHECK(small->outer_step_s_per_parameter < 1e-3);
  CHECK(progress.str().find("synchronisation with 2 of 4 experts held") != std::string::npos);
}

TEST_CASE("mistakes on the command line name the option, what was expected and an example") {
  auto message = [](const std::vector<std::string>& arguments) -> std::string {
    try {
      profile_command(arguments);
    } catch (const fomoe::UsageError& error) {
      return error.what();
    }
    return "no error";
  };
  CHECK(message({"--model", "smal", "--output", "-"}) ==
        "--model: got \"smal\"; expected one of small, medium, large, xl, xxl; for example --model small");
  CHECK(message({"--output", "-"}) == "give either --model or --scenario; for example --model small");
  CHECK(message({"--model", "small"}) ==
        "--output: got nothing; expected a file name or -; for example --output small.json");
  CHECK(message({"--model", "small", "--local-experts", "4,9", "--output", "-"}) ==
        "--local-experts: got \"9\"; expected a whole number from 1 to 8; for example --local-experts 1");
  CHECK(message({"--model", "small", "--time-budget", "60", "--output", "-"}).find("--time-budget: got") ==
        0);
  CHECK(message({"--model", "small", "--steps", "2", "--output", "-"}).find("--steps: got \"2\"") == 0);
  CHECK(message({"--model", "small", "--cuda-graph", "maybe", "--output", "-"}).find("--cuda-graph: got") ==
        0);
  CHECK(message({"--model", "small", "--device", "cpu", "--cuda-graph", "on", "--output", "-"}) ==
        "--cuda-graph: got on, but the device is not a GPU; expected auto or off; for example --cuda-graph "
        "auto");
  CHECK(message({"--model", "small", "--shared-device", "--steps", "5", "--output", "-"}) ==
        "--steps: got \"5\" together with --shared-device; expected only one of them, since processes that "
        "share a device end their points after the same time; for example --shared-device --time-budget 4s");
  CHECK(message({"--model", "small", "--nonsense"}).find("--nonsense") != std::string::npos);
  CHECK(message({"--model", "small", "stray"}) != "no error");
#ifdef FOMOE_CUDA
  const char* const why = "there is no usable CUDA device on this machine";
#else
  const char* const why = "this fomoe-train was built without CUDA (to build it with CUDA: ";
#endif
  if (!cuda_available()) {
    CHECK(message({"--model", "small", "--device", "cuda", "--output", "-"})
              .find(std::string("--device: got cuda, but ") + why) == 0);
  }
  CHECK_THROWS_AS(profile_command({"--scenario", "/nonexistent.toml", "--output", "-"}), fomoe::FileError);
}

TEST_CASE("the program's exit codes: 0 ok, 2 the user's mistake, 1 anything else") {
  CHECK(exit_code("--help") == 0);
  CHECK(exit_code("profile --help") == 0);
  CHECK(exit_code("") == 2);
  CHECK(exit_code("profle") == 2);
  CHECK(exit_code("profile --model smal --output -") == 2);
  CHECK(exit_code("profile --scenario /nonexistent.toml --output -") == 2);
  const std::string quick = "profile --scenario " FOMOE_SOURCE_DIR
                            "/experiments/scenarios/tiny-training.toml --steps 3 --warmup 0 --device cpu";
  CHECK(exit_code(quick + " --output -") == 0);
  // Both are noticed before the measurement.
  CHECK(exit_code(quick + " --output /nonexistent/folder/p.json") == 2);
  CHECK(exit_code(quick + " --output /proc/p.json") == 1);
}
