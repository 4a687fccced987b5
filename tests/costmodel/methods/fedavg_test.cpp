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

TEST_CASE("fedavg along a chain: as many bytes, and 2M − 1 steps of a chunk of S/(M+1) each way") {
  const int sites = 7;
  Scenario scenario = tests::ideal_scenario("fedavg", sites);
  const double star = closed_form(scenario).bytes_sent_per_site_per_round;
  scenario.strategy.collective = Collective::chain;
  scenario.platform = platforms::uniform(sites, 1e9, 2e9, 0.01);
  const double payload = 2.0 * static_cast<double>(count_parameters(scenario.model).total());  // bf16
  const Plan plan = tests::plan_of(scenario);
  CHECK(tests::sent_in_round(plan, sites, 0).total() == doctest::Approx(2 * 6 * payload / 7).epsilon(1e-14));
  const RunReport report = closed_form(scenario);
  CHECK(report.bytes_sent_per_site_per_round == doctest::Approx(star).epsilon(1e-14));
  CHECK(report.round.communication_s == doctest::Approx(2 * 13 * (payload / 8 / 1e9 + 0.01)).epsilon(1e-12));
  // Nothing crosses a link if the server's site is alone.
  Scenario alone = tests::ideal_scenario("fedavg", 1);
  alone.strategy.collective = Collective::chain;
  CHECK(closed_form(alone).round.communication_s == 0);
}
