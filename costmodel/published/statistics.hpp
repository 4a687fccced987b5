// Student's t, means and least squares: what intervals over a few studies need.
#pragma once
#include <cstddef>
#include <vector>

namespace fomoe::costmodel {

/// Degrees of freedom of the last quantile that is tabulated, which also holds for more of them.
inline constexpr int kMostDegrees = 10;
/// One-sided 90 % quantile of Student's t: half of an interval that holds 80 %.
double t_90(int degrees);
/// P(T ≤ t) of Student's t for whole degrees of freedom.
double student_cdf(double t, int degrees);

double mean_of(const std::vector<double>& values);
/// √(mean of the squares).
double root_mean_square(const std::vector<double>& values);
/// Of a sample: divided by n − 1. Needs two values.
double standard_deviation(const std::vector<double>& values);
/// Slope of the line through (x, y) by least squares.
double least_squares_slope(const std::vector<double>& x, const std::vector<double>& y);

}  // namespace fomoe::costmodel
