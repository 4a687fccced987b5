// The root of a decreasing function.
#pragma once
#include <algorithm>
#include <boost/math/tools/toms748_solve.hpp>
#include <cmath>
#include <cstdint>

namespace fomoe::costmodel {

/// Where a continuous function that decreases from f(low) ≥ 0 to f(high) ≤ 0 is 0, by algorithm 748 (Alefeld,
/// Potra and Shi 1995). Precise to about 14 digits of the result. Returns `low` if f(low) ≤ 0, and `high` if
/// f(high) ≥ 0.
template <class Function>
double root_of_decreasing(const Function& f, double low, double high) {
  const double at_low = f(low), at_high = f(high);
  if (!(at_low > 0)) return low;
  if (!(at_high < 0)) return high;
  const auto precise = [](double a, double b) {
    return std::abs(b - a) <= 1e-14 * std::max(std::abs(a), std::abs(b));
  };
  std::uintmax_t most_steps = 200;
  const auto [below, above] =
      boost::math::tools::toms748_solve(f, low, high, at_low, at_high, precise, most_steps);
  return (below + above) / 2;
}

}  // namespace fomoe::costmodel
