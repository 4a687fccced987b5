// Tests of gossip: every site averages with a few random partners.
#include <doctest/doctest.h>

#include <set>
#include <utility>

#include "costmodel/compose/make_plan.hpp"
#include "costmodel/counts/memory.hpp"
#include "costmodel/formula/closed_form.hpp"
#include "costmodel/plan/method.hpp"
#include "tests/plan_bytes.hpp"
#include "tests/scenarios.hpp"

using namespace fomoe;
using namespace fomoe::costmodel;

TEST_CASE("gossip: disjoint pairs are drawn anew in each round, and every site sends peers·S") {
  for (const int peers : {1, 2, 3}) {
    Scenario scenario = tests::ideal_scenario("gossip", 8);
    scenario.strategy.gossip_peers = peers;
    const Plan plan = tests::plan_of(scenario);
    const double payload = 2.0 * static_cast<double>(count_parameters(scenario.model).total());  // bf16
    std::set<std::set<std::pair<int, int>>> drawn;
    for (std::int64_t index = 0; index < plan.rounds; ++index) {
      const RoundPlan round = plan.round(index);
      std::set<std::pair<int, int>> pairs;
      std::vector<int> sends(8, 0), receives(8, 0);
      for (const Exchange& exchange : std::get<Transfer>(round.ops[1].what).exchanges) {
        CHECK(pairs.insert({exchange.nodes[0], exchange.nodes[1]}).second);  // no pair twice
        CHECK(exchange.nodes[0] != exchange.nodes[1]);
        ++sends[static_cast<std::size_t>(exchange.nodes[0])];
        ++receives[static_cast<std::size_t>(exchange.nodes[1])];
      }
      for (const auto& [a, b] : pairs) CHECK(pairs.contains({b, a}));  // both directions
      CHECK(sends == std::vector<int>(8, peers));
      CHECK(receives == std::vector<int>(8, peers));
      drawn.insert(pairs);
      CHECK(tests::sent_in_round(plan, 8, index).total() == doctest::Approx(peers * payload).epsilon(1e-14));
    }
    CHECK(drawn.size() > 6);  // different matchings in 12 rounds; eight sites have 105
    CHECK(closed_form(scenario).round.communication_s ==
          doctest::Approx(peers * payload / 1e9).epsilon(1e-12));
  }
}

TEST_CASE(
    "gossip among an odd number of sites: each matching leaves one out, so the mean is 2⌊M/2⌋/M of a copy") {
  Scenario scenario = tests::ideal_scenario("gossip", 5);
  scenario.strategy.gossip_peers = 2;
  const double payload = 2.0 * static_cast<double>(count_parameters(scenario.model).total());
  CHECK(tests::sent_in_round(tests::plan_of(scenario), 5, 0).total() ==
        doctest::Approx(2 * 4.0 / 5 * payload).epsilon(1e-14));
  CHECK(summarise(scenario).sent.total() == doctest::Approx(2 * 4.0 / 5 * payload).epsilon(1e-14));
  CHECK(summarise(scenario).stages[0].bytes ==
        doctest::Approx(2 * payload).epsilon(1e-14));  // the site with the most bytes
}
