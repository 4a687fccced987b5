#include "trainer/model/normal.hpp"

#include <ATen/Dispatch.h>
#include <ATen/Parallel.h>

#include <cmath>

namespace fomoe::trainer {
namespace {

// The natural logarithm. The C library's logarithm may differ in the last bit between machines. With x =
// m·2^e and s = (m − 1)/(m + 1):
//   log x = e·log 2 + 2·(s + s³/3 + s⁵/5 + …)
// For √½ <= m <= √2, s² is below 0.03, so the first term that is left out is below 1e-14.
double portable_log(double x) {
  constexpr double kLog2 = 0.69314718055994530942, kRoot = 0.70710678118654752440;
  constexpr int kTerms = 9;
  int exponent = 0;
  double m = std::frexp(x, &exponent);
  if (m < kRoot) {
    m *= 2;
    --exponent;
  }
  const double s = (m - 1) / (m + 1), square = s * s;
  double sum = 0;
  for (int k = kTerms - 1; k >= 0; --k) sum = sum * square + 1.0 / (2 * k + 1);
  return exponent * kLog2 + 2 * s * sum;
}

}  // namespace

std::uint64_t random_bits(std::uint64_t seed, std::uint64_t index) {
  std::uint64_t z = seed + (index + 1) * 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

double normal_quantile(double p) {
  constexpr double kCentral = 0.425, kTail = 5;  // the three ranges of the algorithm
  const double q = p - 0.5;
  if (std::abs(q) <= kCentral) {
    const double r = 0.180625 - q * q;
    return q * (((59.109374720 * r + 159.29113202) * r + 50.434271938) * r + 3.3871327179) /
           (((67.187563600 * r + 78.757757664) * r + 17.895169469) * r + 1);
  }
  double r = std::sqrt(-portable_log(q < 0 ? p : 1 - p));
  double z = 0;
  if (r <= kTail) {
    r -= 1.6;
    z = (((0.17023821103 * r + 1.3067284816) * r + 2.7568153900) * r + 1.4234372777) /
        ((0.12021132975 * r + 0.73700164250) * r + 1);
  } else {
    r -= kTail;
    z = (((0.017337203997 * r + 0.42868294337) * r + 3.0812263860) * r + 6.6579051150) /
        ((0.012258202635 * r + 0.24197894225) * r + 1);
  }
  return q < 0 ? -z : z;
}

void fill_normal(at::Tensor values, double standard_deviation, std::uint64_t seed) {
  const at::Tensor drawn = at::empty(values.sizes(), values.scalar_type());
  AT_DISPATCH_FLOATING_TYPES(drawn.scalar_type(), "fill_normal", [&] {
    scalar_t* out = drawn.mutable_data_ptr<scalar_t>();
    constexpr std::int64_t kGrain = 1 << 14;  // elements of a task
    at::parallel_for(0, drawn.numel(), kGrain, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) {
        const std::uint64_t bits = random_bits(seed, static_cast<std::uint64_t>(i));
        const double p = (static_cast<double>(bits >> 12) + 0.5) * 0x1p-52;  // never 0 or 1
        out[i] = static_cast<scalar_t>(standard_deviation * normal_quantile(p));
      }
    });
  });
  values.copy_(drawn);
}

}  // namespace fomoe::trainer
