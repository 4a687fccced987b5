#include "costmodel/math/quantiles.hpp"

namespace fomoe::costmodel {

MedianInterval median_interval(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t n = values.size();
  constexpr std::size_t kMany = 300;  // the normal distribution gives the same rank, or its neighbour
  if (n > kMany) {
    const auto count = static_cast<double>(n);
    const auto left_out = static_cast<std::size_t>((count - 1.959964 * std::sqrt(count)) / 2) - 1;
    return {values[left_out], values[n - 1 - left_out]};
  }
  // The probability that exactly i of n values are below the median of their distribution, summed from i = 0.
  double below = 0, exactly = std::pow(0.5, static_cast<double>(n));
  std::size_t outside = 0;  // values left out at each end
  for (std::size_t i = 0; i < n / 2; ++i) {
    below += exactly;
    if (below > 0.025) break;
    outside = i + 1;
    exactly *= static_cast<double>(n - i) / static_cast<double>(i + 1);
  }
  const std::size_t first = outside == 0 ? 0 : outside - 1;
  return {values[first], values[n - 1 - first]};
}

}  // namespace fomoe::costmodel
