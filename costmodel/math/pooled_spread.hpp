// One standard deviation for several groups of results, for example for the seeds of several settings.
#pragma once
#include <cstdint>
#include <vector>

namespace fomoe::costmodel {

struct PooledSpread {
  double variance = 0;                  // Σ over groups of (n − 1)·s² ÷ Σ(n − 1)
  std::int64_t degrees_of_freedom = 0;  // Σ(n − 1); 0: no group has two values, and the variance is unknown
};

/// Groups with values that are not finite, such as losses of runs that diverged, have no spread and are left
/// out.
PooledSpread pooled_spread(const std::vector<std::vector<double>>& groups);

/// Half of the width of the 95 % interval of Σ c·(mean of a group), where `squares_per_value` is Σ c²/n over
/// the groups: Student's t · √(variance · Σ c²/n). Negative if the variance is unknown.
double half_width(const PooledSpread& spread, double squares_per_value);

}  // namespace fomoe::costmodel
