// Tests of DiLoCoX: synchronisation one round late, in int4.
#include <doctest/doctest.h>

#include "costmodel/counts/memory.hpp"
#include "costmodel/formula/closed_form.hpp"
#include "costmodel/plan/method.hpp"
#include "tests/plan_bytes.hpp"
#include "tests/scenarios.hpp"

using namespace fomoe;
using namespace fomoe::costmodel;

TEST_CASE(
    "diloco_x: int4 with one scale per 256 values by default, and the scenario's format if it gives one") {
  const Scenario scenario = tests::every_axis_scenario("diloco_x", 4);
  const auto elements = static_cast<double>(count_parameters(scenario.model).total());
  CHECK(tests::sent_in_round(tests::plan_of(scenario), 4, 0).total() ==
        doctest::Approx(2.0 * 3 / 4 * elements * (0.5 + 4.0 / 256)).epsilon(1e-14));
}

TEST_CASE("diloco_x by hand: round = max(K·t_step, t_sync), and the last synchronisation comes at the end") {
  Scenario scenario = tests::every_axis_scenario("diloco_x", 2);  // 10 rounds of 6 s
  const double payload = static_cast<double>(count_parameters(scenario.model).total()) * (0.5 + 4.0 / 256);
  for (const double synchronisation_s : {4.0, 9.0}) {
    scenario.platform = platforms::uniform(2, payload / synchronisation_s, payload / synchronisation_s, 0);
    const double expected =
        synchronisation_s < 6 ? 10 * 6.0 + synchronisation_s : 6.0 + 10 * synchronisation_s;
    CHECK(closed_form(scenario).wall_clock_s == doctest::Approx(expected).epsilon(1e-12));
  }
}
