// Tests of asynchronous DiLoCo: its bytes equal FedAvg's, and the staleness decides which operations wait for
// each other.
#include <doctest/doctest.h>

#include "costmodel/formula/closed_form.hpp"
#include "costmodel/plan/method.hpp"
#include "tests/plan_bytes.hpp"
#include "tests/scenarios.hpp"

using namespace fomoe;
using namespace fomoe::costmodel;

TEST_CASE(
    "async_diloco: every worker sends a pseudo-gradient and receives a model, (M−1)·S in each direction") {
  const int sites = 4;
  const Scenario scenario = tests::ideal_scenario("async_diloco", sites);
  const Plan plan = tests::plan_of(scenario);
  const double payload = 2.0 * static_cast<double>(count_parameters(scenario.model).total());  // bf16
  REQUIRE(plan.nodes.size() == 5);
  CHECK(plan.nodes[4].kind == NodeKind::server);
  CHECK(tests::sent_in_round(plan, sites, 0).total() ==
        doctest::Approx((3 * payload + 3 * payload) / 4).epsilon(1e-14));
  CHECK(closed_form(scenario).wall_clock_s ==
        doctest::Approx(closed_form(tests::ideal_scenario("fedavg", sites)).wall_clock_s).epsilon(1e-14));
}

TEST_CASE(
    "async_diloco: local steps wait for the previous round's model, and the model waits for stale rounds") {
  Scenario scenario = tests::ideal_scenario("async_diloco", 3);
  // The operations are local steps, then each worker's send and outer step, then the model to each worker.
  const auto down = [&](int worker) {
    return tests::plan_of(scenario).round(4).ops[static_cast<std::size_t>(7 + worker)];
  };
  CHECK(tests::plan_of(scenario).round(4).ops[0].after_earlier ==
        std::vector<EarlierOp>{{7, 1}, {8, 1}, {9, 1}});
  CHECK(down(0).after_earlier.empty());
  CHECK(tests::plan_of(scenario).classes[0].reach == 1);
  scenario.strategy.staleness = 2;
  CHECK(down(1).after_earlier == std::vector<EarlierOp>{{1, 2}, {5, 2}});  // of workers 0 and 2
  CHECK(tests::plan_of(scenario).classes[0].reach == 2);
  scenario.strategy.staleness = 0;
  CHECK(down(1).after_earlier.empty());
  CHECK(down(1).after == std::vector<OpId>{4, 1, 5});     // in the same round
  CHECK(tests::plan_of(scenario).classes[0].reach == 1);  // local steps still wait for the round before
}
