// Tests of the outer optimisers: the state that each keeps, and the bytes that it sends.
#include <doctest/doctest.h>

#include "costmodel/compose/make_plan.hpp"
#include "costmodel/counts/memory.hpp"
#include "costmodel/formula/closed_form.hpp"
#include "costmodel/plan/method.hpp"
#include "tests/memory_of.hpp"
#include "tests/plan_bytes.hpp"
#include "tests/scenarios.hpp"

using namespace fomoe;
using namespace fomoe::costmodel;

TEST_CASE(
    "diloco: adam and yogi keep one more moment and send the same bytes; averaging keeps no outer state") {
  Scenario scenario = tests::ideal_scenario("diloco", 4);
  const auto parameters = static_cast<double>(count_parameters(scenario.model).total());
  const double sent = summarise(scenario).sent.total();
  const struct {
    OuterOptimizer optimizer;
    double bytes_per_parameter, contents;
  } rows[] = {{OuterOptimizer::nesterov, 8, 1},
              {OuterOptimizer::adam, 12, 1},
              {OuterOptimizer::yogi, 12, 1},
              {OuterOptimizer::average, 0, 1},
              {OuterOptimizer::local_adamw, 0, 3}};
  for (const auto& row : rows) {
    scenario.strategy.outer_optimizer = row.optimizer;
    CHECK(memory_per_site(scenario).outer_state ==
          doctest::Approx(row.bytes_per_parameter * parameters).epsilon(1e-14));
    CHECK(summarise(scenario).sent.total() == doctest::Approx(row.contents * sent).epsilon(1e-14));
    CHECK(tests::sent_in_round(tests::plan_of(scenario), 4, 0).total() ==
          doctest::Approx(row.contents * sent).epsilon(1e-14));
  }
}
