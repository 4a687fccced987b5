// Transfers that take hours or weeks after steps of milliseconds.
#include <doctest/doctest.h>

#include <cmath>
#include <random>

#include "costmodel/formula/closed_form.hpp"
#include "sim/executor/simulated_run.hpp"
#include "tests/scenarios.hpp"

using namespace fomoe;

// SimGrid's clock then has fewer digits behind the point than the precision with which SimGrid ends flows.
TEST_CASE("transfers that are much longer than the steps before them end at their time") {
  std::mt19937_64 random(20261125);
  std::uniform_real_distribution<double> exponent(2, 5), step_s(0.001, 0.2);
  for (const char* method : {"fedavg", "diloco"}) {
    for (int drawn = 0; drawn < 300; ++drawn) {
      costmodel::Scenario scenario = tests::ideal_scenario(method, 7);
      scenario.workload.global_batch_sequences = 259;
      scenario.strategy.local_steps = 1;
      scenario.workload.tokens =
          3 * scenario.workload.global_batch_sequences * scenario.model.sequence_length;
      scenario.compute = costmodel::GivenStepTime{step_s(random)};
      scenario.model.vocabulary = 1000 + drawn;
      const double up = std::pow(10, exponent(random));
      scenario.platform = platforms::uniform(7, up, 9.6 * up, 0);
      CAPTURE(method);
      CAPTURE(up);
      CHECK(sim::simulate_scenario(scenario).report.wall_clock_s ==
            doctest::Approx(costmodel::closed_form(scenario).wall_clock_s).epsilon(1e-6));
    }
  }
}
