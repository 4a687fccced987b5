// Tests of FedAvg: pseudo-gradients go to a server at the first site, and parameters come back.
#include <doctest/doctest.h>

#include "costmodel/counts/memory.hpp"
#include "costmodel/formula/closed_form.hpp"
#include "costmodel/plan/method.hpp"
#include "tests/plan_bytes.hpp"
#include "tests/scenarios.hpp"

using namespace fomoe;
using namespace fomoe::costmodel;

TEST_CASE("fedavg: (M−1)·S up and (M−1)·S down, since the first site's worker is at the server's site") {
  const int sites = 4;
  const Scenario scenario = tests::ideal_scenario("fedavg", sites);
  const Plan plan = tests::plan_of(scenario);
  const double payload = 2.0 * static_cast<double>(count_parameters(scenario.model).total());  // bf16
  REQUIRE(plan.nodes.size() == 5);
  CHECK(plan.nodes[4].kind == NodeKind::server);
  CHECK(plan.nodes[4].site == 0);
  CHECK(tests::sent_in_round(plan, sites, 0).total() ==
        doctest::Approx((3 * payload + 3 * payload) / 4).epsilon(1e-14));

  // All bytes pass through the first site's links, one direction after the other: (M−1)·S/B each.
  const RunReport report = closed_form(scenario);
  CHECK(report.round.communication_s == doctest::Approx(2 * 3 * payload / 1e9).epsilon(1e-12));
  // The server receives pseudo-gradients and returns parameters.
  const RoundPlan round = plan.round(0);
  CHECK(std::get<Transfer>(round.ops[1].what).exchanges[0].payloads[0].content == Content::pseudo_gradient);
  CHECK(std::get<Transfer>(round.ops[3].what).exchanges[0].payloads[0].content == Content::parameter);
  CHECK(std::get<Transfer>(round.ops[1].what).exchanges[0].nodes[0] == 4);
}
