#include "costmodel/published/statistics.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <numeric>

namespace fomoe::costmodel {

double t_90(int degrees) {
  constexpr std::array<double, kMostDegrees> kQuantiles = {
      3.0776835372, 1.8856180832, 1.6377443536, 1.5332062741, 1.4758840488,
      1.4397557473, 1.4149239277, 1.3968153098, 1.3830287384, 1.3721836411};
  return kQuantiles[static_cast<std::size_t>(std::min(degrees, kMostDegrees)) - 1];
}

// The finite sums of Abramowitz and Stegun, 26.7.3 and 26.7.4.
double student_cdf(double t, int degrees) {
  const double angle = std::atan(t / std::sqrt(degrees)), cosine = std::cos(angle);
  const bool odd = degrees % 2 == 1;
  double term = odd ? cosine : 1, total = 0;
  for (int k = 1; k <= degrees / 2; ++k) {
    total += term;
    term *= (odd ? 2.0 * k / (2 * k + 1) : (2.0 * k - 1) / (2 * k)) * cosine * cosine;
  }
  return 0.5 + (odd ? (angle + std::sin(angle) * total) / std::numbers::pi : 0.5 * std::sin(angle) * total);
}

double mean_of(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

double root_mean_square(const std::vector<double>& values) {
  return std::sqrt(std::inner_product(values.begin(), values.end(), values.begin(), 0.0) /
                   static_cast<double>(values.size()));
}

double standard_deviation(const std::vector<double>& values) {
  const double mean = mean_of(values);
  double sum = 0;
  for (const double value : values) sum += (value - mean) * (value - mean);
  return std::sqrt(sum / static_cast<double>(values.size() - 1));
}

double least_squares_slope(const std::vector<double>& x, const std::vector<double>& y) {
  const double x_mean = mean_of(x), y_mean = mean_of(y);
  double products = 0, squares = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    products += (x[i] - x_mean) * (y[i] - y_mean);
    squares += (x[i] - x_mean) * (x[i] - x_mean);
  }
  return products / squares;
}

}  // namespace fomoe::costmodel
