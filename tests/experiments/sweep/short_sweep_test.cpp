// Tests of what the number of rows of a sweep decides.
#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "tests/experiments/run_fomoe.hpp"

using namespace fomoe::tests;
using nlohmann::json;

TEST_CASE("rows of a Linux host are the answers of `fomoe simulate`, if there are at most 32") {
  // Connections with windows are simulated several times, and rounds with many bytes without windows: both
  // depend on how much simulation is allowed.
  const std::string far =
      "experiments/scenarios/two-sites.toml --set platform.sites=4 --set workload.tokens=40e6 --set "
      "strategy.local_steps=2 --set platform.bandwidth=10Gbps --set platform.latency=80ms ";
  const auto rows_of = [&](const std::string& options) {
    const Ran ran = run_in(source_dir(), "fomoe sweep " + far + options);
    REQUIRE_MESSAGE(ran.exit_status == 0, ran.err);
    return std::pair(json::parse(ran.out)["rows"], ran.err);
  };
  const auto [few, said] = rows_of("--vary strategy.method=expert_parallel_wan,diloco");
  CHECK(said.find("a tenth of the simulation time") == std::string::npos);
  for (const json& row : few) {
    const Ran single = run_in(source_dir(), "fomoe simulate " + far + "--output - --set strategy.method=" +
                                                row["strategy.method"].get<std::string>());
    REQUIRE_MESSAGE(single.exit_status == 0, single.err);
    CHECK(row["wall_clock_s"] == json::parse(single.out)["wall_clock_s"]);
  }
  const auto [many, said_of_many] =
      rows_of("--vary strategy.local_steps=1..33+1 --set strategy.method=diloco --set workload.tokens=1e6");
  CHECK(many.size() == 33);
  CHECK(said_of_many.find("each row of more than 32 has a tenth of the simulation time") !=
        std::string::npos);
}

TEST_CASE("a value that is given twice counts once") {
  const Ran ran = run_in(source_dir(),
                         "fomoe sweep tests/ideal/two-sites.toml --engine closed-form --vary "
                         "strategy.local_steps=16,16,8..16+4 --vary strategy.method=ddp,diloco,ddp");
  REQUIRE_MESSAGE(ran.exit_status == 0, ran.err);
  CHECK(json::parse(ran.out)["rows"].size() == 3 * 2);
}

TEST_CASE(
    "memory of a row does not depend on the rows before it, where fragments follow from the local steps") {
  const auto memory = [](const std::string& values) {
    std::map<int, double> found;
    const json rows = json::parse(
        run("fomoe sweep " + kTwoSites +
            " --engine closed-form --set strategy.method=streaming_diloco --set model.layers=12 --set "
            "compute.accelerator=H100-SXM --set compute.mfu=0.4 --unset compute.step_time --set "
            "compute.gpus_per_site=8 --set compute.micro_batch_sequences=1 --vary strategy.local_steps=" +
            values + " --output -")
            .out)["rows"];
    for (const json& row : rows) found[row["strategy.local_steps"]] = row["memory_bytes_per_gpu"];
    return found;
  };
  const auto up = memory("1,8,64");
  CHECK(up == memory("64,8,1"));
  CHECK(up.at(1) != up.at(64));
}
