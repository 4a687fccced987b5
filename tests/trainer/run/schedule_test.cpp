// Tests the learning rate of a step.
#include "trainer/optimizer/schedule.hpp"

#include <doctest/doctest.h>

#include <cmath>

using namespace fomoe::trainer;

TEST_CASE("warm-up rises to the peak; a constant rate stays there") {
  const LearningRate rate{2.0, /*warmup_steps=*/4, Schedule::constant, 100, 0, 0.1};
  CHECK(rate.at(0) == doctest::Approx(0.5));
  CHECK(rate.at(3) == doctest::Approx(2.0));
  CHECK(rate.at(4) == 2.0);
  CHECK(rate.at(99) == 2.0);
}

TEST_CASE("cosine: the peak at its start, the middle half way, the final share at the end of the run") {
  const LearningRate rate{2.0, /*warmup_steps=*/10, Schedule::cosine, 110, 0, 0.2};
  CHECK(rate.at(10) == doctest::Approx(2.0));
  CHECK(rate.at(60) == doctest::Approx(2.0 * 0.6));
  CHECK(rate.at(35) == doctest::Approx(2.0 * (0.2 + 0.8 * (1 + std::sqrt(0.5)) / 2)));
  CHECK(rate.at(110) == doctest::Approx(0.4));
  CHECK(rate.at(500) == doctest::Approx(0.4));
}

TEST_CASE("wsd: stays, then falls linearly in the last steps") {
  const LearningRate rate{2.0, /*warmup_steps=*/10, Schedule::wsd, 100, 20, 0.1};
  CHECK(rate.at(10) == 2.0);
  CHECK(rate.at(80) == 2.0);
  CHECK(rate.at(90) == doctest::Approx(2.0 * 0.55));
  CHECK(rate.at(100) == doctest::Approx(0.2));
}
