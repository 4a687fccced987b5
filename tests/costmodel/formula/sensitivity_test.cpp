// Tests of sensitivity(): the inputs on which the wall clock depends.
#include "costmodel/formula/sensitivity.hpp"

#include <doctest/doctest.h>

#include <cmath>

#include "costmodel/formula/closed_form.hpp"
#include "tests/scenarios.hpp"

namespace {

using namespace fomoe;
using namespace fomoe::costmodel;

const Sensitivity& input(const std::vector<Sensitivity>& list, const std::string& name) {
  for (const Sensitivity& row : list) {
    if (row.input == name) return row;
  }
  FAIL("no " << name);
  return list.front();
}

}  // namespace

TEST_CASE("sensitivity by hand: 12 rounds of 5 steps of 1 s, and a transfer of x seconds") {
  const Scenario scenario = tests::ideal_scenario("diloco", 2);
  const double as_it_is_s = closed_form(scenario).wall_clock_s;
  const double transfers_s = as_it_is_s - 60;
  REQUIRE(transfers_s > 0);
  const std::vector<Sensitivity> list = sensitivity(scenario);
  // The time is bytes ÷ rate: a rate that is 10 % lower takes 1/0.9 as long.
  CHECK(input(list, "link rates").less_s == doctest::Approx(60 + transfers_s / 0.9).epsilon(1e-12));
  CHECK(input(list, "link rates").more_s == doctest::Approx(60 + transfers_s / 1.1).epsilon(1e-12));
  CHECK(input(list, "compute.step_time").more_s == doctest::Approx(66 + transfers_s).epsilon(1e-12));
  // 60 steps in rounds of 4 or 6 steps have 15 or 10 transfers instead of 12.
  CHECK(input(list, "strategy.local_steps").less_share == 0.8);
  CHECK(input(list, "strategy.local_steps").less_s ==
        doctest::Approx(60 + transfers_s * 15 / 12).epsilon(1e-12));
  CHECK(input(list, "strategy.local_steps").more_s ==
        doctest::Approx(60 + transfers_s * 10 / 12).epsilon(1e-12));
  for (const Sensitivity& row : list) CHECK(row.input != "latencies");  // the scenario has no latencies
  for (std::size_t i = 1; i < list.size(); ++i)
    CHECK(std::abs(list[i - 1].change) >= std::abs(list[i].change));
}

TEST_CASE("sensitivity: inputs without effect on the closed form, and illegal changes, are left out") {
  Scenario scenario = tests::ideal_scenario("fomoe", 4, 2);
  scenario.network.jitter_s = 0.1;  // the closed form ignores jitter
  for (const Sensitivity& row : sensitivity(scenario)) CHECK(row.input != "network_model.jitter");
  CHECK(input(sensitivity(scenario, [](const Scenario& s) { return 1 + s.network.jitter_s; }),
              "network_model.jitter")
            .change != 0);
  // Each site has one sequence, so that a smaller batch is impossible.
  for (const Sensitivity& row : sensitivity(scenario)) CHECK(row.input != "workload.global_batch_sequences");
  int calls = 0;
  (void)sensitivity(scenario, [&](const Scenario&) { return static_cast<double>(++calls); });
  CHECK(calls % 2 == 1);  // one call without a change, and two per input
}
