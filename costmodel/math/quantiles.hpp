// Medians and quantiles of samples.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

namespace fomoe::costmodel {

/// The median; the mean of the two middle values if their number is even. `values` must not be empty.
inline double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return (values[(values.size() - 1) / 2] + values[values.size() / 2]) / 2;
}

/// The quantile by nearest rank: the ⌈share·n⌉-th smallest of n values, at least the first. `sorted` must be
/// sorted and not empty.
inline double quantile(const std::vector<double>& sorted, double share) {
  const auto n = static_cast<double>(sorted.size());
  const double rank =
      std::ceil(share * n * (1 - 1e-12));  // rounding must not lift a whole share·n to the next rank
  return sorted[static_cast<std::size_t>(std::clamp(rank - 1, 0.0, n - 1))];
}

/// A 95 % confidence interval of the median, whatever the distribution: from the k-th smallest to the k-th
/// largest value, with the largest k for which the binomial distribution of n and 1/2 has at most 2.5 % below
/// k (Conover, Practical Nonparametric Statistics, section 3.2). It contains the median of the values. Fewer
/// than 6 values cannot give 95 %: then all of them are inside. `values` must not be empty.
struct MedianInterval {
  double low, high;
};
MedianInterval median_interval(std::vector<double> values);

}  // namespace fomoe::costmodel
