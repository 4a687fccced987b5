#include "costmodel/math/pooled_spread.hpp"

#include <algorithm>
#include <cmath>

#include "costmodel/math/replicas.hpp"

namespace fomoe::costmodel {

PooledSpread pooled_spread(const std::vector<std::vector<double>>& groups) {
  PooledSpread result;
  double squares = 0;
  for (const std::vector<double>& values : groups) {
    const bool finite = std::all_of(values.begin(), values.end(), [](double v) { return std::isfinite(v); });
    if (values.size() < 2 || !finite) continue;
    const double deviation = spread_of(values).standard_deviation;
    const auto freedom = static_cast<std::int64_t>(values.size()) - 1;
    squares += deviation * deviation * static_cast<double>(freedom);
    result.degrees_of_freedom += freedom;
  }
  if (result.degrees_of_freedom > 0)
    result.variance = squares / static_cast<double>(result.degrees_of_freedom);
  return result;
}

double half_width(const PooledSpread& spread, double squares_per_value) {
  if (spread.degrees_of_freedom == 0) return -1;
  return student_t(spread.degrees_of_freedom) * std::sqrt(spread.variance * squares_per_value);
}

}  // namespace fomoe::costmodel
