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
  const std::vector<Sensitivity> list = sensitivity(scenario).inputs;
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
  for (const Sensitivity& row : sensitivity(scenario).inputs) CHECK(row.input != "network_model.jitter");
  const auto jitter = [](const std::vector<Scenario>& scenarios) {
    std::vector<double> times_s;
    for (const Scenario& one : scenarios) times_s.push_back(1 + one.network.jitter_s);
    return times_s;
  };
  const Sensitivities with_jitter = sensitivity(scenario, jitter);
  CHECK(with_jitter.unchanged_s == 1.1);
  CHECK(input(with_jitter.inputs, "network_model.jitter").less_s == doctest::Approx(1.09));
  CHECK(input(with_jitter.inputs, "network_model.jitter").more_s == doctest::Approx(1.11));
  // Each site has one sequence, so that a smaller batch is impossible.
  for (const Sensitivity& row : sensitivity(scenario).inputs)
    CHECK(row.input != "workload.global_batch_sequences");
  // An input with a refused change is left out; the others stay.
  const auto refusing = [&](const std::vector<Scenario>& scenarios) {
    std::vector<double> times_s = jitter(scenarios);
    CHECK(times_s.size() ==
          1 + 2 * with_jitter.inputs.size());  // the scenario itself, and two for each input
    for (std::size_t i = 0; i < scenarios.size(); ++i)
      if (scenarios[i].network.jitter_s > scenario.network.jitter_s) times_s[i] = std::nan("");
    return times_s;
  };
  const Sensitivities some = sensitivity(scenario, refusing);
  CHECK(some.inputs.size() == with_jitter.inputs.size() - 1);
  for (const Sensitivity& row : some.inputs) CHECK(row.input != "network_model.jitter");
}
