// Tests that the searching commands take numbers of owners that give some sites one expert more than others.
#include "tests/experiments/planner/planned.hpp"

using namespace fomoe::tests;
using nlohmann::json;

TEST_CASE("8 experts at three sites: plan tries each O_e") {
  const std::string three = kTwoSites + " --set platform.sites=3";
  const json plan =
      planned(three +
              " --vary strategy.method=fomoe --vary strategy.local_steps=16 --vary strategy.collective=ring"
              " --vary strategy.payload_dtype=bf16 --vary strategy.placement=fixed"
              " --vary strategy.fragments=1 --vary strategy.overlap_steps=0");
  CHECK(plan["candidates"] == 3);
  CHECK(plan["dropped"].empty());
}

TEST_CASE("8 experts at three sites: explain, sweep and solve") {
  const std::string three = kTwoSites + " --set platform.sites=3 --set strategy.expert_overlap=2";
  const Ran explained = run_in(source_dir(), "fomoe explain " + three);
  CHECK_MESSAGE(explained.exit_status == 0, explained.err);
  CHECK(explained.out.find("a site holds O_e/M = 0.6667 of the experts, 5 or 6 of the 8 of each layer") !=
        std::string::npos);
  CHECK(run_in(source_dir(), "fomoe simulate " + three)
            .out.find("overlap O_e = 2 (5 or 6 of 8 experts of a layer at a site), fixed placement") !=
        std::string::npos);

  // A sweep moves from row to row; simulate reads each scenario anew.
  const std::string profile =
      " --unset compute.step_time --set compute.mfu=0.4 --set compute.peak_flops=100TFLOPS --set "
      "strategy.skip_token=true --set strategy.placement=random";
  const Ran swept = run_in(source_dir(), "fomoe sweep " + kTwoSites + profile +
                                             " --engine closed-form --vary platform.sites=2..7+1 --vary "
                                             "strategy.expert_overlap=1,2 --output -");
  REQUIRE_MESSAGE(swept.exit_status == 0, swept.err);
  const json rows = json::parse(swept.out)["rows"];
  REQUIRE(rows.size() == 12);
  for (const json& row : rows) {
    const int sites = row["platform.sites"], overlap = row["strategy.expert_overlap"];
    const Ran one =
        run_in(source_dir(), "fomoe simulate " + kTwoSites + profile +
                                 " --engine closed-form --set platform.sites=" + std::to_string(sites) +
                                 " --set strategy.expert_overlap=" + std::to_string(overlap) + " --output -");
    REQUIRE_MESSAGE(one.exit_status == 0, one.err);
    const json report = json::parse(one.out);
    for (const char* key : {"wall_clock_s", "flops_per_token", "bytes_per_token", "compute_utilization"})
      CHECK(report[key].get<double>() == doctest::Approx(row[key].get<double>()).epsilon(1e-14));
  }

  const Ran solved = run_in(
      source_dir(), "fomoe solve " + three + " --for platform.bandwidth --target wall_clock=3min --output -");
  CHECK_MESSAGE(solved.exit_status == 0, solved.err);
}
