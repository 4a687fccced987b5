// Tests of Decoupled DiLoCo: fragments at each site's own pace, by hand.
#include <doctest/doctest.h>

#include <map>

#include "costmodel/compose/check.hpp"
#include "costmodel/formula/closed_form.hpp"
#include "costmodel/plan/method.hpp"
#include "platforms/support/input_error.hpp"
#include "tests/scenarios.hpp"

using namespace fomoe;
using namespace fomoe::costmodel;

namespace {

/// Steps of 1 s, 60 of them, and fragments that take turns within four steps.
Scenario scenario_of(int sites, int fragments) {
  Scenario scenario = tests::ideal_scenario("decoupled_diloco", sites);
  scenario.model.layers = 4;
  scenario.strategy.local_steps = 4;
  scenario.strategy.fragments = fragments;
  return scenario;
}

double payload_of(const Scenario& scenario) {
  return 2.0 * static_cast<double>(count_parameters(scenario.model).total());  // bf16
}

}  // namespace

TEST_CASE("decoupled_diloco: in four steps each fragment goes to the syncer and back once, as equal parts") {
  const Scenario scenario = scenario_of(3, 4);
  const Plan plan = tests::plan_of(scenario);
  std::map<std::pair<NodeId, int>, std::int64_t> bytes;  // of what each worker uploads, by fragment
  std::int64_t steps = 0;
  for (std::int64_t r = 0; r < plan.rounds; ++r) {
    for (const Op& op : plan.round(r).ops) {
      if (const auto* compute = std::get_if<Compute>(&op.what)) {
        if (compute->work == Work::whole_step && compute->nodes.front() == 2) steps += compute->repeat;
        continue;
      }
      const Exchange& exchange = std::get<Transfer>(op.what).exchanges.front();
      for (const Payload& payload : exchange.payloads)
        if (exchange.nodes.front() < 3) bytes[{exchange.nodes.front(), payload.chunk}] += payload.bytes();
    }
  }
  CHECK(steps == 60);
  std::int64_t all = 0;
  for (int fragment = 0; fragment < 4; ++fragment) {
    const double part = static_cast<double>(bytes[{2, fragment}]);
    all += bytes[{2, fragment}];
    CHECK(part == doctest::Approx(15 * payload_of(scenario) / 4).epsilon(1e-4));
  }
  CHECK(static_cast<double>(all) == 15 * payload_of(scenario));
}

TEST_CASE("decoupled_diloco: no site waits while fragments are back before their next turn") {
  Scenario scenario = scenario_of(2, 2);
  const double payload = payload_of(scenario);
  // A fragment needs 2 s of steps and 0.25 + 0.5 s each way, and has its turn every 4 s.
  scenario.platform = platforms::uniform(2, payload, payload, 0.25);
  RunReport report = closed_form(scenario);
  CHECK(report.wall_clock_s == doctest::Approx(60).epsilon(1e-12));
  CHECK(report.sites[1].exposed_communication_s == doctest::Approx(0));
  CHECK(report.sites[1].bytes_sent == doctest::Approx(15 * payload).epsilon(1e-12));
  CHECK(report.sites[0].bytes_received == report.sites[1].bytes_sent);
  // It needs 0.5 + 8 s each way: two fragments take 2 + 17 s to go there and come back.
  scenario.platform = platforms::uniform(2, payload / 16, payload / 16, 0.5);
  const double late_s = 2 * 60 / (2 / 2.0 + 2 / 9.5);
  report = closed_form(scenario);
  CHECK(report.wall_clock_s == doctest::Approx(late_s).epsilon(1e-12));
  CHECK(report.sites[1].exposed_communication_s * 15 == doctest::Approx(late_s * 7.5 / 9.5).epsilon(1e-12));
  // With four fragments the next upload waits for the one before: 0.5 + 4 s.
  scenario.strategy.fragments = 4;
  CHECK(closed_form(scenario).wall_clock_s == doctest::Approx(2 * 60 / (1 / 1.0 + 1 / 4.5)).epsilon(1e-9));
}

TEST_CASE("decoupled_diloco: one fragment is async_diloco") {
  const Scenario decoupled = scenario_of(4, 1);
  Scenario whole = tests::ideal_scenario("async_diloco", 4);
  whole.model.layers = 4;
  whole.strategy.local_steps = 4;
  CHECK(closed_form(decoupled).wall_clock_s == closed_form(whole).wall_clock_s);
}

TEST_CASE(
    "decoupled_diloco: fragments that do not divide the local steps are refused with a number that does") {
  const Scenario scenario = scenario_of(2, 3);
  CHECK_THROWS_WITH_AS(check(scenario),
                       doctest::Contains("strategy.fragments: got 3 with 4 local steps; expected a "
                                         "number that divides local_steps"),
                       InputError);
}
