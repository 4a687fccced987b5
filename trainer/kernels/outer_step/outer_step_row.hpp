// The arithmetic of outer_step.hpp. It is C++17 without LibTorch, since nvcc reads it.
#pragma once
#include "trainer/kernels/team.hpp"

namespace fomoe::trainer {

template <class T>
struct NesterovStep {
  T *anchor, *momentum;
  const T* difference;
  std::int64_t n;
  T rate, decay;  // η and μ
};

/// For the W elements from index i on: b ← μ·b + d, then θ ← θ − η·(d + μ·b). θ is the anchor, b the
/// momentum, d the difference.
template <int W, class T>
FOMOE_DEVICE void nesterov_elements(const NesterovStep<T>& a, std::int64_t i) {
  auto theta = load<W>(a.anchor + i), b = load<W>(a.momentum + i);
  const auto d = load<W>(a.difference + i);
  for (int w = 0; w < W; ++w) {
    b.of[w] = a.decay * b.of[w] + d.of[w];
    theta.of[w] -= a.rate * (d.of[w] + a.decay * b.of[w]);
  }
  store<W>(a.momentum + i, b);
  store<W>(a.anchor + i, theta);
}

}  // namespace fomoe::trainer
