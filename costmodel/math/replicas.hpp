// Spread of results over runs with different seeds.
#pragma once
#include <cstdint>
#include <vector>

namespace fomoe::costmodel {

struct Spread {
  double mean = 0;
  double standard_deviation = 0;    // sample standard deviation: √(Σ(x − mean)² ÷ (n − 1))
  double p5 = 0, p50 = 0, p95 = 0;  // nearest rank: the ⌈p·n⌉-th smallest
  /// 95 % confidence: mean ± t·s/√n, Student's t of n − 1 degrees of freedom.
  double mean_low = 0, mean_high = 0;
};

struct Replicas {
  std::int64_t count = 0;
  std::uint64_t first_seed = 0;  // the following seeds are consecutive
  Spread wall_clock_s, compute_utilization;
};

/// Statistics of at least two values.
Spread spread_of(std::vector<double> values);

/// The 97.5 % point of Student's t: a table up to 10 degrees of freedom, then the Cornish-Fisher expansion,
/// which is accurate to 1e-4 there.
double student_t(std::int64_t degrees_of_freedom);

}  // namespace fomoe::costmodel
