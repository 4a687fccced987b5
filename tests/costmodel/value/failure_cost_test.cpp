// Tests of what failures cost: the power of work that is done again, and intervals between checkpoints that
// are hardly ever used.
#include <doctest/doctest.h>

#include "costmodel/formula/closed_form.hpp"
#include "costmodel/value/goodput.hpp"
#include "tests/scenarios.hpp"

using namespace fomoe;
using namespace fomoe::costmodel;

TEST_CASE("work that is done again draws power again") {
  Scenario scenario = tests::ideal_scenario("diloco", 4);
  scenario.workload.tokens *= 200;
  scenario.power = GpuPower{700, 0.1, 1};
  Failures failures;
  failures.preemptions_per_s = 1 / 3000.0;
  failures.restart_s = 1;
  failures.checkpoint_s = 1;
  failures.checkpoint_rounds = 20;
  scenario.failures = failures;
  const RunReport report = closed_form(scenario);
  // Hardly any time is lost but by work that is done again.
  const double longer = report.goodput->finish_p50_s / report.wall_clock_s;
  CHECK(longer > 1.05);
  CHECK(*report.goodput->energy_p50_kwh / *report.cost->energy_kwh == doctest::Approx(longer).epsilon(0.02));
}

TEST_CASE(
    "policy drop: the recommended interval may be the whole run, since checkpoints are hardly ever used") {
  Scenario scenario = tests::ideal_scenario("diloco", 4);
  scenario.workload.tokens *= 2000;
  Failures failures;
  failures.preemptions_per_s = 1 / 3000.0;
  failures.restart_s = 60;
  failures.checkpoint_s = 100;
  failures.policy = FailurePolicy::drop;
  scenario.failures = failures;
  const Goodput found = *closed_form(scenario).goodput;
  for (const std::int64_t rounds : {1000, 10000}) {
    scenario.failures->checkpoint_rounds = rounds;
    CHECK(closed_form(scenario).goodput->goodput <= found.goodput * 1.005);
  }
}
