// The arithmetic of adam.hpp for a few elements. It is C++17 without LibTorch, since nvcc reads it.
#pragma once
#include <cmath>

#include "trainer/kernels/team.hpp"

namespace fomoe::trainer {

struct AdamSettings {
  const double* rate;  // in the memory of the tensors; the learning rate η is rate·rate_scale
  double rate_scale, beta1, beta2, epsilon, weight_decay;
};

/// A tensor of n elements: master and moments are of type Sum<T>, the gradient of type T, and `copy` is the
/// copy of type T that the forward and backward passes use, or nullptr. `updates` includes the update about
/// to be made.
struct AdamPiece {
  void *master, *moment1, *moment2;
  const void* gradient;
  void* copy;
  const float* updates;
  std::int64_t n;
};

/// The factors that are the same for all elements of a tensor. η is the learning rate, λ the weight decay,
/// and t the number of updates including this one.
template <class S>
struct AdamFactors {
  S kept;          // 1 − η·λ
  S step;          // η/(1 − β1^t)
  S inverse_root;  // 1/√(1 − β2^t)
};

template <class S>
FOMOE_DEVICE AdamFactors<S> adam_factors(const AdamSettings& a, const AdamPiece& piece) {
  const double rate = *a.rate * a.rate_scale, t = static_cast<double>(*piece.updates);
  return {static_cast<S>(1 - rate * a.weight_decay), static_cast<S>(rate / (1 - std::pow(a.beta1, t))),
          static_cast<S>(1 / std::sqrt(1 - std::pow(a.beta2, t)))};
}

/// Updates the W elements from index i on, with decoupled weight decay (Loshchilov & Hutter 2019, algorithm
/// 2). θ is the master, g the gradient, and m and v are the moments; AdamFactors explains η, λ and t:
///   m ← β1·m + (1 − β1)·g,   v ← β2·v + (1 − β2)·g²
///   θ ← (1 − η·λ)·θ − η/(1 − β1^t)·m/(√v/√(1 − β2^t) + ε)
template <class T, int W>
FOMOE_DEVICE void adam_elements(const AdamSettings& a, const AdamPiece& piece, const AdamFactors<Sum<T>>& f,
                                std::int64_t i) {
  using S = Sum<T>;
  const S beta1 = static_cast<S>(a.beta1), beta2 = static_cast<S>(a.beta2),
          new1 = static_cast<S>(1 - a.beta1), new2 = static_cast<S>(1 - a.beta2),
          epsilon = static_cast<S>(a.epsilon);
  S *master = static_cast<S*>(piece.master) + i, *moment1 = static_cast<S*>(piece.moment1) + i,
    *moment2 = static_cast<S*>(piece.moment2) + i;
  auto theta = load<W>(master), m = load<W>(moment1), v = load<W>(moment2);
  const auto gradient = load<W>(static_cast<const T*>(piece.gradient) + i);
  Pack<T, W> copy;
  for (int w = 0; w < W; ++w) {
    const S g = static_cast<S>(gradient.of[w]);
    m.of[w] = beta1 * m.of[w] + new1 * g;
    v.of[w] = beta2 * v.of[w] + new2 * g * g;
    const S root = std::sqrt(v.of[w]) * f.inverse_root + epsilon;
    theta.of[w] = f.kept * theta.of[w] - f.step * m.of[w] / root;
    copy.of[w] = static_cast<T>(theta.of[w]);
  }
  store<W>(master, theta);
  store<W>(moment1, m);
  store<W>(moment2, v);
  if (piece.copy != nullptr) store<W>(static_cast<T*>(piece.copy) + i, copy);
}

}  // namespace fomoe::trainer
