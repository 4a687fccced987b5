// Tests of the search for the value of a key at which a target is reached.
#include "experiments/planner/search.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>

using namespace fomoe::planner;

namespace {

/// Counts how often the costly margin is asked for.
struct Asked {
  Margin margin;
  int times = 0;
};

Found found_with(Asked& asked, const Domain& domain, const Margin& formula) {
  const Margin precise = [&](double value) {
    ++asked.times;
    return asked.margin(value);
  };
  return search(domain, formula, precise);
}
Found found_with(Asked& asked, const Domain& domain) { return found_with(asked, domain, asked.margin); }

}  // namespace

TEST_CASE("search: a smooth margin is narrowed to 0.1 % with fewer evaluations than bisection takes") {
  for (const double target : {0.011, 1.5, 37.0, 700.0}) {
    CAPTURE(target);
    Asked rising{[&](double value) { return value / (value + target) - 0.5; }};
    const Found found = found_with(rising, {1e-3, 1e3});
    CHECK(found.kind == Found::Kind::smallest);
    CHECK(found.value >= target * (1 - 1e-12));
    CHECK(found.value <= target * 1.001);
    Asked falling{[&](double value) { return target / (value + target) - 0.5; }};
    const Found largest = found_with(falling, {1e-3, 1e3});
    CHECK(largest.kind == Found::Kind::largest);
    CHECK(largest.value <= target * (1 + 1e-12));
    CHECK(largest.value >= target / 1.001);
    // Of these, 7 to 11 are for the ends, the bracket and what is beyond it. Bisection took 21 in all.
    CHECK(rising.times <= 13);
    CHECK(falling.times <= 13);
  }
}

TEST_CASE("search: a closed form that errs says where to look, and the error that was seen corrects it") {
  for (const double error : {0.7, 0.95, 1.1, 1.5}) {
    CAPTURE(error);
    const double target = 37;
    Asked asked{[&](double value) { return value / (value + target) - 0.5; }};
    const Found found =
        found_with(asked, {1e-3, 1e3}, [&](double value) { return value / (value + error * target) - 0.5; });
    CHECK(found.value >= target * (1 - 1e-12));
    CHECK(found.value <= target * 1.001);
    CHECK(asked.times <= 15);
  }
}

TEST_CASE("search: values are rounded, and a coarse resolution ends the search where margins are noise") {
  const double target = 0.21234567;
  const auto smooth = [&](double value) { return value / (value + target) - 0.5; };
  // The noise is as large as what 1 % of the value changes.
  Asked asked{[&](double value) { return smooth(value) + 0.0025 * std::sin(1e5 * value); }};
  Domain domain{1e-3, 1e3};
  domain.resolution = 1e-2;
  domain.rounded = [](double value) { return std::ceil(value * 1e4) / 1e4; };
  const Found found = found_with(asked, domain, [&](double value) { return smooth(value) + 0.01; });
  CHECK(found.value == doctest::Approx(target).epsilon(0.02));
  CHECK(*asked.margin(found.value) >= 0);
  CHECK(found.value == domain.rounded(found.value - 1e-9));
  CHECK(asked.times <= 15);
}

TEST_CASE(
    "search: steps, margins of exactly 0, impossible values and infinite margins are narrowed as well") {
  const double inf = std::numeric_limits<double>::infinity();
  Asked steps{[](double value) { return value < 1.3 ? -1.0 : 0.0; }};
  const Found step = found_with(steps, {1e-3, 1e3});
  CHECK(step.kind == Found::Kind::smallest);
  CHECK(step.value >= 1.3);
  CHECK(step.value <= 1.3 * 1.001);
  Asked possible{[](double value) { return value < 1.3 ? std::nullopt : std::optional(1.0); }};
  CHECK(found_with(possible, {1e-3, 1e3}).value == doctest::Approx(1.3).epsilon(2e-3));
  Asked infinite{[&](double value) { return value < 1.3 ? -inf : inf; }};
  CHECK(found_with(infinite, {1e-3, 1e3}).value == doctest::Approx(1.3).epsilon(1e-3));
}

TEST_CASE("search: a target that both ends miss is crossed towards the end that misses it by more") {
  Asked below{[](double value) { return value < 2 ? -0.01 : 5 - value; }};  // reached from 2 to 5
  const Found largest = found_with(below, {1e-3, 1e3});
  CHECK(largest.kind == Found::Kind::largest);
  CHECK(largest.value == doctest::Approx(5).epsilon(1e-3));
  CHECK(largest.missed_again == 1e-3);
  REQUIRE(largest.other_end);
  CHECK(*largest.other_end == doctest::Approx(2).epsilon(1e-3));
  Asked above{[](double value) { return value > 5 ? -0.01 : value - 2; }};
  const Found smallest = found_with(above, {1e-3, 1e3});
  CHECK(smallest.kind == Found::Kind::smallest);
  CHECK(smallest.value == doctest::Approx(2).epsilon(1e-3));
  CHECK(smallest.missed_again == 1e3);
  REQUIRE(smallest.other_end);
  CHECK(*smallest.other_end == doctest::Approx(5).epsilon(1e-3));
}

TEST_CASE(
    "search: where the closed form rises, a target that noise misses at both ends has a smallest value") {
  const auto formula = [](double value) { return std::log(value) - 1; };
  Asked noisy{[](double value) {
    return (value >= 4 && value < 6) || (value >= 9 && value < 600) ? 0.1 : value >= 600 ? -0.5 : -0.1;
  }};
  const Found found = found_with(noisy, {1, 1000}, formula);
  CHECK(found.kind == Found::Kind::smallest);
  CHECK(found.value == doctest::Approx(4).epsilon(2e-3));
  REQUIRE(found.other_end);
  CHECK(*found.other_end == doctest::Approx(6).epsilon(2e-3));
  REQUIRE(found.reached_again);
  CHECK((*found.reached_again >= 9 && *found.reached_again < 600));
}

TEST_CASE("search: whole numbers from 0 on") {
  const Domain domain{0, 100, true};
  Asked three{[](double value) { return 3 - value; }};
  CHECK(found_with(three, domain).value == 3);
  Asked none{[](double value) { return value == 0 ? 1.0 : -value; }};
  const Found zero = found_with(none, domain);
  CHECK(zero.kind == Found::Kind::largest);
  CHECK(zero.value == 0);
  Asked impossible{[](double) { return std::optional<double>(); }};
  CHECK(!found_with(impossible, domain).best);
}

TEST_CASE("search: where every value reaches the target, the end that does so by less") {
  Asked falling{[](double value) { return 2 - value / 1e3; }};
  const Found up = found_with(falling, {1, 1e3});
  CHECK(up.kind == Found::Kind::every);
  CHECK(up.upper_end);
  CHECK(up.value == 1e3);
  Asked rising{[](double value) { return 1 + value; }};
  const Found down = found_with(rising, {1, 1e3});
  CHECK(down.kind == Found::Kind::every);
  CHECK(!down.upper_end);
  CHECK(down.value == 1);
}
