// Compares the closed form with the simulation of runs whose last round is short.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "costmodel/formula/approximations.hpp"
#include "costmodel/formula/closed_form.hpp"
#include "costmodel/formula/resolved.hpp"
#include "costmodel/methods/all.hpp"
#include "sim/executor/simulated_run.hpp"
#include "tests/draws.hpp"
#include "tests/scenarios.hpp"

using namespace fomoe;

namespace {

bool has_note(const costmodel::RunReport& report, const std::string& words) {
  return std::any_of(report.notes.begin(), report.notes.end(),
                     [&](const std::string& note) { return note.find(words) != std::string::npos; });
}

}  // namespace

TEST_CASE("short last rounds: the closed form is exact, or says by how much it may be wrong") {
  tests::Draws draws(5);
  int wrong = 0;
  for (const costmodel::Method& method : costmodel::methods()) {
    CAPTURE(method.name);
    for (int i = 0; i < 12; ++i) {
      costmodel::Scenario scenario = tests::every_axis_scenario(method.name, 4);
      scenario.model.layers = 4;
      scenario.strategy.global_period = 1;
      scenario.strategy.fragments = 1 + draws.below(2);
      scenario.strategy.overlap_steps = draws.below(3);
      scenario.strategy.layerwise = method.name == std::string("streaming_diloco") && draws.chance(0.5);
      const int steps = 1 + draws.below(20);
      scenario.workload.tokens = 1LL * steps * 4 * scenario.model.sequence_length;
      const auto all = static_cast<double>(costmodel::count_parameters(scenario.model).total());
      const double bytes_per_s = 2 * all / draws.between(0.1, 9);
      scenario.platform = platforms::uniform(4, bytes_per_s, bytes_per_s, draws.between(0, 0.1));
      CAPTURE(steps);

      const costmodel::Resolved resolved = costmodel::resolve(scenario);
      const costmodel::RunReport formula = costmodel::closed_form(scenario);
      const double simulated_s =
          sim::simulate_scenario(scenario, {.rounds = {}, .all_rounds = true}).report.wall_clock_s;
      const double error_s = std::abs(formula.wall_clock_s - simulated_s);
      const bool is_exact = error_s < 1e-9 * simulated_s;
      const double last = costmodel::steps_of_short_last_round(
          resolved.plan, static_cast<double>(scenario.strategy.local_steps));
      CHECK(has_note(formula, "the last round has ") == (last > 0));
      if (last > 0) {
        CHECK(steps % scenario.strategy.local_steps == last);
        CHECK(error_s <= resolved.times.round.communication_s * (1 + 1e-9));
        wrong += is_exact ? 0 : 1;
      } else if (!costmodel::approximates(resolved)) {
        CHECK(is_exact);
      }
    }
  }
  CHECK(wrong > 10);  // else nothing was tested
}
