#include "costmodel/math/replicas.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "costmodel/math/quantiles.hpp"

namespace fomoe::costmodel {

double student_t(std::int64_t degrees_of_freedom) {
  constexpr std::array<double, 10> kTable = {12.7062, 4.3027, 3.1824, 2.7764, 2.5706,
                                             2.4469,  2.3646, 2.3060, 2.2622, 2.2281};
  if (degrees_of_freedom <= 10)
    return kTable[static_cast<std::size_t>(std::max<std::int64_t>(degrees_of_freedom, 1)) - 1];
  const double z = 1.959964, v = static_cast<double>(degrees_of_freedom);
  const double z3 = z * z * z, z5 = z3 * z * z, z7 = z5 * z * z;
  return z + (z3 + z) / (4 * v) + (5 * z5 + 16 * z3 + 3 * z) / (96 * v * v) +
         (3 * z7 + 19 * z5 + 17 * z3 - 15 * z) / (384 * v * v * v);
}

Spread spread_of(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const auto n = static_cast<double>(values.size());
  Spread spread;
  for (const double value : values) spread.mean += value / n;
  double squares = 0;
  for (const double value : values) squares += (value - spread.mean) * (value - spread.mean);
  spread.standard_deviation = std::sqrt(squares / (n - 1));
  const double half =
      student_t(static_cast<std::int64_t>(values.size()) - 1) * spread.standard_deviation / std::sqrt(n);
  spread.p5 = quantile(values, 0.05);
  spread.p50 = quantile(values, 0.5);
  spread.p95 = quantile(values, 0.95);
  spread.mean_low = spread.mean - half;
  if (values.front() >= 0) spread.mean_low = std::max(0.0, spread.mean_low);  // times, money
  spread.mean_high = spread.mean + half;
  return spread;
}

}  // namespace fomoe::costmodel
