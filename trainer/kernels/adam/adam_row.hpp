// The arithmetic of adam.hpp for a few elements. It is C++17 without LibTorch, since nvcc reads it.
#pragma once
#include <cmath>

#include "trainer/kernels/team.hpp"

namespace fomoe::trainer {

/// `rate` and the counts of AdamPiece are in the memory of the tensors. adam_factors() explains the rest.
struct AdamSettings {
  const double* rate;
  double rate_scale, beta1, beta2, epsilon, weight_decay, warmup;
};

/// A tensor of n elements. The gradient is of type G, and master and moments are of type Sum<G>. `copy` is
/// the copy that the forward and backward passes use, of a bf16 type C, or nullptr.
///
/// The elements of each expert come in runs of `run` neighbouring elements, and the runs of all experts take
/// turns: element i belongs to expert (i / run) % experts. A tensor [experts, a, b] has runs of a·b elements,
/// a matrix with a column for each expert has runs of one element, and a tensor without experts is a single
/// run of one expert.
///
/// `updates` and `ages` have one value for each expert and include the update about to be made: the updates
/// that the moments hold, and the updates since the expert's restart. Without `ages` (nullptr) no expert
/// warms up.
struct AdamPiece {
  void *master, *moment1, *moment2;
  const void* gradient;
  void* copy;
  const float *updates, *ages;
  std::int64_t n, run, experts;
};

/// The factors that are the same for all elements of an expert.
template <class S>
struct AdamFactors {
  S kept;                      // 1 − η·λ
  S step;                      // η/(1 − β1^t)
  S inverse_root;              // 1/√(1 − β2^t)
  S beta1, beta2, new1, new2;  // β1, β2, 1 − β1, 1 − β2
  S epsilon;                   // ε
};

/// λ is the weight decay, t the number of updates, and η the learning rate:
///   η = rate·rate_scale·min(1, age/warmup)
template <class S>
FOMOE_DEVICE AdamFactors<S> adam_factors(const AdamSettings& a, const AdamPiece& piece, std::int64_t expert) {
  double warmth = 1;
  if (piece.ages != nullptr && piece.ages[expert] < a.warmup)
    warmth = static_cast<double>(piece.ages[expert]) / a.warmup;
  const double rate = *a.rate * (a.rate_scale * warmth), t = static_cast<double>(piece.updates[expert]);
  return {static_cast<S>(1 - rate * a.weight_decay),
          static_cast<S>(rate / (1 - std::pow(a.beta1, t))),
          static_cast<S>(1 / std::sqrt(1 - std::pow(a.beta2, t))),
          static_cast<S>(a.beta1),
          static_cast<S>(a.beta2),
          static_cast<S>(1 - a.beta1),
          static_cast<S>(1 - a.beta2),
          static_cast<S>(a.epsilon)};
}

/// One update with decoupled weight decay (Loshchilov & Hutter 2019, algorithm 2). θ is the master, g the
/// gradient, and m and v are the moments; adam_factors() explains η, λ and t:
///   m ← β1·m + (1 − β1)·g,   v ← β2·v + (1 − β2)·g²
///   θ ← (1 − η·λ)·θ − η/(1 − β1^t)·m/(√v/√(1 − β2^t) + ε)
/// V is S, or a vector of several S.
template <class S, class V>
FOMOE_DEVICE void adam_update(const AdamFactors<S>& f, V& theta, V& m, V& v, const V& g) {
  using std::sqrt;  // vectors have a root of their own
  m = f.beta1 * m + f.new1 * g;
  v = f.beta2 * v + f.new2 * g * g;
  const V root = sqrt(v) * f.inverse_root + f.epsilon;
  theta = f.kept * theta - f.step * m / root;
}

/// Updates the W elements from index i on, which all belong to the expert of the factors.
template <class G, class C, int W>
FOMOE_DEVICE void adam_elements(const AdamPiece& piece, const AdamFactors<Sum<G>>& f, std::int64_t i) {
  using S = Sum<G>;
  S *master = static_cast<S*>(piece.master) + i, *moment1 = static_cast<S*>(piece.moment1) + i,
    *moment2 = static_cast<S*>(piece.moment2) + i;
  auto theta = load<W>(master), m = load<W>(moment1), v = load<W>(moment2);
  const auto gradient = load<W>(static_cast<const G*>(piece.gradient) + i);
  Pack<C, W> copy;
  for (int w = 0; w < W; ++w) {
    adam_update(f, theta.of[w], m.of[w], v.of[w], static_cast<S>(gradient.of[w]));
    copy.of[w] = static_cast<C>(static_cast<float>(theta.of[w]));
  }
  store<W>(master, theta);
  store<W>(moment1, m);
  store<W>(moment2, v);
  if (piece.copy != nullptr) store<W>(static_cast<C*>(piece.copy) + i, copy);
}

}  // namespace fomoe::trainer
