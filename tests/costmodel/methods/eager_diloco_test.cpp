// Tests of DiLoCo with eager updates: bytes and times of a delayed average, and one more pseudo-gradient.
#include <doctest/doctest.h>

#include "costmodel/counts/memory.hpp"
#include "costmodel/formula/closed_form.hpp"
#include "costmodel/plan/method.hpp"
#include "tests/memory_of.hpp"
#include "tests/plan_bytes.hpp"
#include "tests/scenarios.hpp"

using namespace fomoe;
using namespace fomoe::costmodel;

TEST_CASE("eager_diloco: a transfer as long as K steps costs nothing but the end of the run") {
  Scenario scenario = tests::ideal_scenario("eager_diloco", 4);  // 12 rounds of 5 s
  const double bytes = tests::sent_in_round(tests::plan_of(scenario), 4, 0).total();
  CHECK(bytes ==
        doctest::Approx(2.0 * 3 / 4 * 2 * static_cast<double>(count_parameters(scenario.model).total())));
  scenario.platform = platforms::uniform(4, bytes / 5, bytes / 5, 0);
  CHECK(closed_form(scenario).wall_clock_s == doctest::Approx(60 + 5).epsilon(1e-9));
  scenario.platform = platforms::uniform(4, bytes / 7, bytes / 7, 0);
  CHECK(closed_form(scenario).wall_clock_s == doctest::Approx(60 + 12 * 2 + 5).epsilon(1e-9));
}

TEST_CASE("eager_diloco: anchor, momentum, the pseudo-gradient in flight and the one before: 16 B") {
  const Scenario scenario = tests::ideal_scenario("eager_diloco", 4);
  CHECK(memory_per_site(scenario).outer_state ==
        doctest::Approx(16.0 * static_cast<double>(count_parameters(scenario.model).total())).epsilon(1e-13));
}
