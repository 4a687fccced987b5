// Tests of local SGD, which averages parameters alone.
#include <doctest/doctest.h>

#include "costmodel/counts/memory.hpp"
#include "costmodel/formula/closed_form.hpp"
#include "costmodel/plan/method.hpp"
#include "tests/memory_of.hpp"
#include "tests/plan_bytes.hpp"
#include "tests/scenarios.hpp"

using namespace fomoe;
using namespace fomoe::costmodel;

TEST_CASE("local_sgd: 2(M−1)/M·S of parameters per round, and no state kept between rounds") {
  const Scenario scenario = tests::ideal_scenario("local_sgd", 4);
  const Plan plan = tests::plan_of(scenario);
  const double payload = 2.0 * static_cast<double>(count_parameters(scenario.model).total());  // bf16
  CHECK(tests::sent_in_round(plan, 4, 0).total() == doctest::Approx(2.0 * 3 / 4 * payload).epsilon(1e-14));
  const RoundPlan round = plan.round(0);
  CHECK(round.ops.size() == 2);  // local steps and average, without an outer step
  CHECK(std::get<Transfer>(round.ops[1].what).exchanges[0].payloads[0].content == Content::parameter);
  CHECK(memory_per_site(scenario).outer_state == 0);
}
