// Tests of DES-LOC, which averages parameters and the two moments with three different periods.
#include <doctest/doctest.h>

#include "costmodel/compose/make_plan.hpp"
#include "costmodel/counts/memory.hpp"
#include "costmodel/formula/closed_form.hpp"
#include "costmodel/plan/method.hpp"
#include "tests/plan_bytes.hpp"
#include "tests/scenarios.hpp"

using namespace fomoe;
using namespace fomoe::costmodel;

TEST_CASE("des_loc: parameters every round, the first moment every 3rd, the second every 6th") {
  const Scenario scenario = tests::ideal_scenario("des_loc", 4);  // 12 rounds
  const Plan plan = tests::plan_of(scenario);
  const double once = 2.0 * 3 / 4 * 2.0 * static_cast<double>(count_parameters(scenario.model).total());
  const double contents[] = {1, 1, 2, 1, 1, 3, 1, 1, 2, 1, 1, 3};
  for (int round = 0; round < 12; ++round) {
    CHECK(tests::sent_in_round(plan, 4, round).total() ==
          doctest::Approx(contents[round] * once).epsilon(1e-14));
  }
  // The mean is 1 + 1/3 + 1/6 = 1.5.
  CHECK(summarise(scenario).sent.total() == doctest::Approx(1.5 * once).epsilon(1e-14));
}

TEST_CASE("des_loc: equal rounds form one class, whatever the periods") {
  Scenario scenario = tests::ideal_scenario("des_loc", 4);
  scenario.strategy.local_steps = 1;
  scenario.workload.tokens = 61LL * 4 * 10;  // 61 rounds, not a multiple of the periods
  scenario.strategy.moment1_period = 4;
  scenario.strategy.moment2_period = 6;
  const Plan plan = tests::plan_of(scenario);
  CHECK(plan.classes.size() == 4);  // neither moment, each moment alone, both
  std::int64_t rounds = 0;
  for (const RoundClass& alike : plan.classes) {
    rounds += alike.count;
    const double sent = tests::sent_in_round(plan, 4, alike.round_at(0)).total();
    for (std::int64_t i = 0; i < alike.count; ++i)
      CHECK(tests::sent_in_round(plan, 4, alike.round_at(i)).total() == sent);
  }
  CHECK(rounds == 61);
  // ⌊61/4⌋ = 15 first moments and ⌊61/6⌋ = 10 second moments in addition to 61 times the parameters.
  const double once = 2.0 * 3 / 4 * 2.0 * static_cast<double>(count_parameters(scenario.model).total());
  CHECK(summarise(scenario).sent.total() == doctest::Approx((61 + 15 + 10) / 61.0 * once).epsilon(1e-13));
}
