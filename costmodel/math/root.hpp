// The root of a decreasing function.
#pragma once
#include <algorithm>
#include <cmath>

namespace fomoe::costmodel {

/// Where a continuous function that decreases from f(low) ≥ 0 to f(high) ≤ 0 is 0, by regula falsi with the
/// Illinois rule (Dowell and Jarratt 1971) and a bisection whenever that does not halve the interval in three
/// steps. Precise to about 14 digits of the result. Returns `low` if f(low) ≤ 0, and `high` if f(high) ≥ 0.
template <class Function>
double root_of_decreasing(const Function& f, double low, double high) {
  double at_low = f(low), at_high = f(high);
  if (!(at_low > 0)) return low;
  if (!(at_high < 0)) return high;
  constexpr int kMostSteps = 200;
  double before = high - low;
  for (int step = 0, side = 0; step < kMostSteps; ++step) {
    if (high - low <= 1e-14 * std::max(std::abs(low), std::abs(high))) break;
    double middle = (low * -at_high + high * at_low) / (at_low - at_high);
    if (step % 3 == 2) {
      if (high - low > before / 2) middle = (low + high) / 2;
      before = high - low;
    }
    if (!(middle > low && middle < high)) middle = (low + high) / 2;
    if (!(middle > low && middle < high)) break;
    const double value = f(middle);
    if (value == 0) return middle;
    if (value > 0) {
      low = middle;
      at_low = value;
      if (side == 1) at_high /= 2;
      side = 1;
    } else {
      high = middle;
      at_high = value;
      if (side == -1) at_low /= 2;
      side = -1;
    }
  }
  return (low + high) / 2;
}

}  // namespace fomoe::costmodel
