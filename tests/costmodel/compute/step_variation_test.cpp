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

TEST_CASE("stragglers that persist are slow for a round or for the run, and as often as others") {
  Scenario scenario = tests::ideal_scenario("diloco", 2);
  scenario.variation.straggler_share = 0.1;
  scenario.variation.straggler_factor = 5;
  for (const StragglerLasts lasts : {StragglerLasts::round, StragglerLasts::run}) {
    scenario.variation.straggler_lasts = lasts;
    int slow = 0, changed = 0;
    for (std::uint64_t node = 0; node < 1000; ++node) {
      const double factor = drawn_step_factor(scenario, node, 7, 0, 20);
      CHECK((factor == 1 || factor == 5));  // all steps alike
      CHECK(drawn_step_factor(scenario, node, 7, 3, 1) == factor);
      slow += factor == 5 ? 1 : 0;
      changed += drawn_step_factor(scenario, node, 8, 0, 1) != factor ? 1 : 0;
    }
    CHECK(std::abs(slow - 100) < 4 * 9.5);
    if (lasts == StragglerLasts::run) CHECK(changed == 0);
    if (lasts == StragglerLasts::round) CHECK(std::abs(changed - 180) < 4 * 12.2);  // 2 · 0.1 · 0.9
  }
}

TEST_CASE(
    "stragglers together: the correlation of two sites is that share, whatever the share of stragglers") {
  Scenario scenario = tests::ideal_scenario("diloco", 2);
  scenario.variation.straggler_factor = 5;
  for (const StragglerLasts lasts : {StragglerLasts::step, StragglerLasts::round}) {
    for (const double p : {0.1, 0.5}) {
      for (const double together : {0.0, 0.4, 1.0}) {
        scenario.variation.straggler_lasts = lasts;
        scenario.variation.straggler_share = p;
        scenario.variation.stragglers_together = together;
        constexpr int kDraws = 4000;
        double a = 0, b = 0, both = 0;
        for (std::uint64_t round = 0; round < kDraws; ++round) {
          const bool first = drawn_step_factor(scenario, 0, round, 0, 1) == 5;
          const bool second = drawn_step_factor(scenario, 1, round, 0, 1) == 5;
          a += first ? 1.0 / kDraws : 0;
          b += second ? 1.0 / kDraws : 0;
          both += first && second ? 1.0 / kDraws : 0;
        }
        CHECK(a == doctest::Approx(p).scale(0).epsilon(0.25));
        const double correlation = (both - a * b) / std::sqrt(a * (1 - a) * b * (1 - b));
        CAPTURE(p);
        CHECK(correlation == doctest::Approx(together).scale(1).epsilon(0.08));
      }
    }
  }
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

TEST_CASE("a straggler's factor without a share of stragglers changes nothing") {
  Scenario scenario = tests::ideal_scenario("diloco", 2);
  scenario.variation.coefficient = 0.3;
  const double factor = drawn_step_factor(scenario, 1, 7, 0, 1);
  scenario.variation.straggler_factor = 5;
  CHECK(drawn_step_factor(scenario, 1, 7, 0, 1) == factor);
}
