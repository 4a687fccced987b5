// Tests of NoLoCo: random pairs exchange pseudo-gradients, and slow weights while the steps run.
#include <doctest/doctest.h>

#include <set>

#include "costmodel/formula/closed_form.hpp"
#include "costmodel/methods/shared/random_pairs.hpp"
#include "costmodel/plan/method.hpp"
#include "tests/plan_bytes.hpp"
#include "tests/scenarios.hpp"

using namespace fomoe;
using namespace fomoe::costmodel;

TEST_CASE(
    "noloco: every site exchanges two copies of the model with one other site, whatever the number of "
    "sites") {
  for (const int sites : {2, 4, 8}) {
    const Scenario scenario = tests::ideal_scenario("noloco", sites);
    const double payload = 2.0 * static_cast<double>(count_parameters(scenario.model).total());
    CHECK(tests::sent_in_round(tests::plan_of(scenario), sites, 3).total() ==
          doctest::Approx(2 * payload).epsilon(1e-13));
  }
  // One of five sites has no partner.
  const Scenario five = tests::ideal_scenario("noloco", 5);
  const double payload = 2.0 * static_cast<double>(count_parameters(five.model).total());
  CHECK(tests::sent_in_round(tests::plan_of(five), 5, 0).total() ==
        doctest::Approx(2 * payload * 4 / 5).epsilon(1e-13));
}

TEST_CASE("noloco: pairs are disjoint, and change from round to round") {
  const Scenario scenario = tests::ideal_scenario("noloco", 8);
  std::set<std::pair<NodeId, NodeId>> seen;
  for (std::int64_t round = 0; round < 20; ++round) {
    std::set<NodeId> sites;
    for (const auto& [a, b] : random_pairs(scenario, round, 1)) {
      sites.insert({a, b});
      seen.insert(std::minmax(a, b));
    }
    CHECK(sites.size() == 8);
  }
  CHECK(seen.size() > 20);  // of 28 pairs
}

TEST_CASE("noloco by hand: K steps hide the slow weights, the pseudo-gradients follow") {
  Scenario scenario = tests::ideal_scenario("noloco", 4);
  const double payload = 2.0 * static_cast<double>(count_parameters(scenario.model).total());
  for (const double seconds : {2.0, 8.0}) {  // per payload, beside K = 5 steps of 1 s
    scenario.platform = platforms::uniform(4, payload / seconds, payload / seconds, 0.1);
    CHECK(closed_form(scenario).round.duration_s ==
          doctest::Approx(std::max(5.0, seconds) + 0.1 + seconds).epsilon(1e-9));
  }
}

TEST_CASE(
    "noloco: only the steps of a round hide its slow weights, also if the round is shorter than K steps") {
  Scenario scenario = tests::ideal_scenario("noloco", 4);
  const double payload = 2.0 * static_cast<double>(count_parameters(scenario.model).total());
  scenario.platform = platforms::uniform(4, payload / 2, payload / 2, 0);  // 2 s per payload
  const auto step_tokens = scenario.workload.global_batch_sequences * scenario.model.sequence_length;
  scenario.workload.tokens = static_cast<std::int64_t>(step_tokens);
  // One step of 1 s. Both payloads are sent, one after another, whatever K is.
  CHECK(closed_form(scenario).wall_clock_s == doctest::Approx(2 + 2).epsilon(1e-9));
}

TEST_CASE("noloco with int8: pseudo-gradients have 8 bits, slow weights 16") {
  Scenario scenario = tests::ideal_scenario("noloco", 4);
  scenario.strategy.wire = plain_format(ElementType::int8);
  const auto parameters = static_cast<double>(count_parameters(scenario.model).total());
  CHECK(closed_form(scenario).bytes_sent_per_site_per_round ==
        doctest::Approx(parameters * (1 + 4.0 / 256 + 2)).epsilon(1e-9));
}
