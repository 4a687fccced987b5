// Tests that a run that validates often shows it, and is compared with predictions without it.
#include <doctest/doctest.h>

#include <algorithm>
#include <string>

#include "tests/trainer/live/program.hpp"

using namespace fomoe::tests;
using nlohmann::json;

namespace {

/// The report with the step time of its own computations in its scenario, so that a prediction from it
/// differs in nothing else.
json with_own_step_time(json report, int steps) {
  std::string toml = report["run"]["scenario_toml"];
  const std::string given = "step_time = '50ms'";
  const std::size_t at = toml.find(given);
  REQUIRE(at != std::string::npos);
  const double step_s = report["round"]["compute_s"].get<double>() / steps;
  report["run"]["scenario_toml"] =
      toml.replace(at, given.size(), "step_time = '" + std::to_string(step_s) + "s'");
  return report;
}

}  // namespace

TEST_CASE("a run that validates most of the time is drawn so, and predicted without its validations") {
  const Folder folder;
  // Eight rounds of 4 steps with 4 sequences a site. Each validation has 1,024 sequences.
  const Ended ended =
      run(train({"strategy.method=diloco", "platform.sites=2", "platform.bandwidth=10Gbps",
                 "platform.latency=100us", "workload.global_batch_sequences=8", "strategy.local_steps=4",
                 "workload.tokens=16384", "trainer.validation_rounds=1", "trainer.validation_sequences=1024"},
                {"--local", "--output", folder / "run.json"}));
  CAPTURE(ended.said);
  REQUIRE(ended.status == 0);
  const json report = json::parse(content(folder / "run.json"));
  const json& round = report["round"];
  REQUIRE(round["count"] == 8);
  const double duration_s = round["duration_s"], upkeep_s = round["upkeep_s"],
               delay_s = round["upkeep_delay_s"];
  CHECK(upkeep_s > 0.5 * duration_s);
  CHECK(delay_s > 0.5 * duration_s);
  CHECK(delay_s < duration_s);
  // It is an operation of its own where the round is drawn and where its longest chain is listed.
  double drawn_s = 0;
  for (const json& span : report["round_timeline"]["spans"])
    if (span["kind"] == "upkeep" && span["node"] == 0)
      drawn_s += span["end_s"].get<double>() - span["start_s"].get<double>();
  CHECK(drawn_s > 0.5 * report["round_timeline"]["duration_s"].get<double>());
  const json& path = report["critical_path"];
  CHECK(std::any_of(path.begin(), path.end(), [](const json& step) {
    return step["kind"] == "upkeep" && step["what"] == "validation, checkpoints, logs" &&
           step["seconds"].get<double>() > 0;
  }));
  // With the validations, the prediction would be less than half of what was measured.
  std::ofstream(folder / "own.json") << with_own_step_time(report, 4).dump();
  const Ended compared = run({kPlan, "validate", folder / "own.json", "--output", folder / "errors.json"});
  CAPTURE(compared.said);
  REQUIRE(compared.status == 0);
  const json errors = json::parse(content(folder / "errors.json"))["runs"][0];
  const double predicted_s = errors["predicted"]["wall_clock_s"],
               measured_s = errors["measured"]["wall_clock_s"];
  CHECK(predicted_s < 0.5 * measured_s);
  // The error is that of the time without the validations. How large it is depends on what else runs here.
  CHECK(errors["errors"]["wall_clock"].get<double>() ==
        doctest::Approx(predicted_s / (measured_s - 8 * delay_s) - 1));
}
