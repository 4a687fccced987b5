// Tests of random step times: their mean, their spread, and that they depend only on the seed and on the
// step's place.
#include "costmodel/compute/step_variation.hpp"

#include <doctest/doctest.h>

#include <cmath>

#include "tests/scenarios.hpp"

using namespace fomoe;
using namespace fomoe::costmodel;

TEST_CASE("log-normal steps have mean 1 and the requested coefficient of variation") {
  Scenario scenario = tests::ideal_scenario("diloco", 2);
  scenario.variation.coefficient = 0.3;
  double sum = 0, squares = 0;
  constexpr int kDraws = 20000;
  for (int round = 0; round < kDraws; ++round) {
    const double factor = drawn_step_factor(scenario, 0, static_cast<std::uint64_t>(round), 0, 1);
    sum += factor;
    squares += factor * factor;
  }
  const double mean = sum / kDraws, deviation = std::sqrt(squares / kDraws - mean * mean);
  CHECK(std::abs(mean - 1) < 4 * 0.3 / std::sqrt(kDraws));
  CHECK(std::abs(deviation - 0.3) < 0.02);
  // The mean of K steps has 1/K of the variance.
  CHECK(std::abs(drawn_step_factor(scenario, 0, 0, 0, 100000) - 1) < 4 * 0.3 / std::sqrt(100000.0));
}

TEST_CASE("stragglers: with probability p a step takes f times as long") {
  Scenario scenario = tests::ideal_scenario("diloco", 2);
  scenario.variation.straggler_share = 0.1;
  scenario.variation.straggler_factor = 5;
  CHECK(expected_step_factor(scenario.variation) == doctest::Approx(1.4));
  CHECK(drawn_step_factor(scenario, 0, 0, 0, 100000) == doctest::Approx(1.4).epsilon(0.02));
  int slow = 0;
  for (std::uint64_t node = 0; node < 1000; ++node) {
    const double factor = drawn_step_factor(scenario, node, 7, 0, 1);
    CHECK((factor == 1 || factor == 5));
    slow += factor == 5 ? 1 : 0;
  }
  CHECK(std::abs(slow - 100) < 4 * 9.5);  // σ = √(1000·0.1·0.9)
}

TEST_CASE("draws are equal for the same seed and place, and differ otherwise") {
  Scenario scenario = tests::ideal_scenario("diloco", 2);
  scenario.variation.coefficient = 0.3;
  const double first = drawn_step_factor(scenario, 1, 2, 3, 4);
  CHECK(drawn_step_factor(scenario, 1, 2, 3, 4) == first);
  CHECK(drawn_step_factor(scenario, 2, 2, 3, 4) != first);
  CHECK(drawn_step_factor(scenario, 1, 3, 3, 4) != first);
  CHECK(drawn_step_factor(scenario, 1, 2, 4, 4) != first);
  scenario.seed = 43;
  CHECK(drawn_step_factor(scenario, 1, 2, 3, 4) != first);
}

TEST_CASE("a profile's samples: each drawn step is one of the samples ÷ their median") {
  Scenario scenario = tests::ideal_scenario("diloco", 2);
  StepProfile profile;
  profile.model = scenario.model;
  profile.points = {{1, 8, false, 0, {{1, 1, 0}, {2, 2, 0}, {3, 3, 0}}}};
  scenario.compute = ProfiledCompute{profile, 1};
  scenario.variation.from_samples = true;
  for (std::uint64_t round = 0; round < 20; ++round) {
    const double factor = drawn_step_factor(scenario, 0, round, 0, 1);
    CHECK((factor == 0.5 || factor == 1 || factor == 1.5));
  }
}
