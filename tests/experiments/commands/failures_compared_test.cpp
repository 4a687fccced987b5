// Tests that commands judge a scenario with failures by its median run, and that an exchange through a store
// takes as long by the closed form as in the simulation.
#include <doctest/doctest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/experiments/run_fomoe.hpp"

namespace {

using namespace fomoe::tests;
using nlohmann::json;

const std::string kShipped = std::string(FOMOE_SOURCE_DIR) + "/experiments/scenarios/two-sites.toml";

Ran program(const std::string& arguments) {
  const Folder folder;
  return run_in(folder.path(), "fomoe " + arguments);
}

}  // namespace

TEST_CASE("compare: failures decide which case is the fastest, and how long it takes") {
  const std::string failures =
      " --set failures.restart_time=10min --set failures.checkpoint_cost=10s --set workload.tokens=5e9 "
      "--case "
      "failures.site_mtbf=2h --case failures.site_mtbf=300d";
  const Ran text = program("compare " + kShipped + failures);
  REQUIRE_MESSAGE(text.exit_status == 0, text.err);
  CHECK(text.out.find("those of the median run with failures") != std::string::npos);
  CHECK(text.out.find("site_mtbf=300d with K") != std::string::npos);
  const std::string fastest = text.out.substr(text.out.find("Fastest: "), 60);
  CHECK_MESSAGE(fastest.find("site_mtbf=300d") != std::string::npos, fastest);
  const Ran answer = program("compare " + kShipped + failures + " --output -");
  CHECK(json::parse(answer.out)["verdict"].get<std::string>().find("site_mtbf=300d") < 40);
  const Ran without = program("compare " + kShipped + " --case \"\"");
  CHECK(without.out.find("median run") == std::string::npos);
}

TEST_CASE("solve: a failure rate changes the wall clock, although no run ends at the worst one") {
  const Ran ran =
      program("solve " + kShipped +
              " --set failures.restart_time=1min --set failures.checkpoint_cost=2s --set "
              "failures.site_mtbf=2h --set workload.tokens=5e9 --set network_model.host=ideal --for "
              "failures.site_mtbf --target wall_clock=80min");
  CHECK_MESSAGE(ran.exit_status == 0, ran.err);
  CHECK(ran.out.find("smallest value") != std::string::npos);
  CHECK(ran.out.find("does not change") == std::string::npos);
}

TEST_CASE("solve: where loss grows with K, the largest K whose loss is known, and what ends there") {
  const Ran ran =
      program("solve " + kShipped +
              " --for strategy.local_steps --target loss=2% --set model.dense_parameters=1e9 --set "
              "model.sequence_length=2048 --set workload.tokens=20e9 --set strategy.method=diloco --set "
              "platform.sites=4");
  CHECK(ran.out.find("up to 100, which gives +1.95 %") != std::string::npos);
  CHECK(ran.out.find("Larger values are not possible: loss is unknown") != std::string::npos);
}

TEST_CASE("an exchange through a store uses all connections of a site, by formula as in the simulation") {
  const Folder folder;
  write_all(folder / "s.toml",
            read_all(kShipped) + "\n[platform.store]\nlatency = \"20ms\"\naggregates = true\n");
  for (const char* streams : {"1", "16", "64"}) {
    CAPTURE(streams);
    const auto wall_clock_s = [&](const std::string& engine) {
      const Ran ran =
          run_in(folder.path(), "fomoe simulate s.toml --sensitivity none --output - --engine " + engine +
                                    " --set strategy.method=diloco --set strategy.collective=store "
                                    "--set platform.latency=60ms --set network_model.streams=" +
                                    streams);
      REQUIRE_MESSAGE(ran.exit_status == 0, ran.err);
      return json::parse(ran.out)["wall_clock_s"].get<double>();
    };
    CHECK(wall_clock_s("closed-form") == doctest::Approx(wall_clock_s("simulated")).epsilon(0.03));
  }
}
