// Tests that wherever a fraction is read, a percentage of the same value is read too.
#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "experiments/text/units.hpp"
#include "tests/experiments/run_fomoe.hpp"

namespace {

using namespace fomoe::tests;
using fomoe::scenario::parse_percentage;
using nlohmann::json;

std::string out(const std::string& command) {
  const Ran ran = run_in(source_dir(), command);
  REQUIRE_MESSAGE(ran.exit_status == 0, ran.err);
  return ran.out;
}

}  // namespace

TEST_CASE("percentages are as exact as fractions") {
  CHECK(parse_percentage("95%") == 0.95);
  CHECK(parse_percentage(" 12.5 % ") == 0.125);
  CHECK(parse_percentage("0%") == 0);
  for (const char* wrong : {"95", "-5%", "%", "95percent", "95%%", ""})
    CHECK_THROWS_AS((void)parse_percentage(wrong), fomoe::scenario::QuantityError);
}

TEST_CASE("percentages in a scenario, in --set and in sweeps") {
  const std::string scenario = "fomoe simulate " + kTwoSites +
                               " --set compute.accelerator=H100-SXM --engine closed-form --output - --set ";
  CHECK(out(scenario + "compute.mfu=40%") == out(scenario + "compute.mfu=0.4"));
  CHECK(out(scenario + "compute.mfu=\"'40 %'\"") == out(scenario + "compute.mfu=0.4"));
  const std::string sweep = "fomoe sweep " + kTwoSites + " --engine closed-form --output - --vary ";
  CHECK(out(sweep + "network_model.bandwidth_efficiency=90%,100%") ==
        out(sweep + "network_model.bandwidth_efficiency=0.9,1"));
  CHECK(out(sweep + "network_model.bandwidth_efficiency=50%..100%+10%") ==
        out(sweep + "network_model.bandwidth_efficiency=0.5..1+0.1"));
}

TEST_CASE("percentages work as targets and limits, and for both spellings of utilisation") {
  const std::string solve = "fomoe solve " + kTwoSites + " --engine closed-form --for strategy.local_steps";
  const std::string expected = out(solve + " --target compute_utilization=0.95");
  for (const char* target :
       {"compute_utilization=95%", "utilization=95%", "utilisation=0.95", "compute_utilisation=95%"})
    CHECK(out(solve + " --target " + target) == expected);
  const Ran wrong = run_in(source_dir(), solve + " --target compute_utilization=95");
  CHECK(wrong.exit_status == 2);
  CHECK(wrong.err.find("(did you mean compute_utilization=95%?)") != std::string::npos);
  // Predictions of these runs have errors above 0.1 % and below 99 %.
  const std::string validate = "fomoe validate experiments/validation/runs/ddp-near-small-k1.json --limit ";
  CHECK(run_in(source_dir(), validate + "wall_clock=0.1%").exit_status == 1);
  CHECK(run_in(source_dir(), validate + "wall_clock=99%").exit_status == 0);
  CHECK(run_in(source_dir(), validate + "wall_clock=1p").exit_status == 2);
}
