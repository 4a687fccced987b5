// Tests of the variance that groups of measurements have in common.
#include "costmodel/math/pooled_spread.hpp"

#include <doctest/doctest.h>

#include <limits>

using namespace fomoe::costmodel;

TEST_CASE("the pooled variance by hand: groups of one value and of infinite values do not count") {
  constexpr double kInfinite = std::numeric_limits<double>::infinity();
  // (1, 3): squares of 2 with one degree of freedom; (2, 2, 8): squares of 24 with two.
  const PooledSpread spread = pooled_spread({{1, 3}, {5}, {2, 2, 8}, {1, kInfinite}});
  CHECK(spread.degrees_of_freedom == 3);
  CHECK(spread.variance == doctest::Approx(26.0 / 3).epsilon(1e-12));
  CHECK(pooled_spread({{5}}).degrees_of_freedom == 0);
}
