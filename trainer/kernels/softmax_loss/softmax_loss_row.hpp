// The arithmetic of softmax_loss.hpp for one row that a team works on. It is C++17 without LibTorch, since
// nvcc reads it.
#pragma once
#include <cmath>
#include <limits>

#include "trainer/kernels/team.hpp"

namespace fomoe::trainer {

/// logits is [rows, stride] of a type T, of which the first `vocabulary` columns count; losses is [rows] of
/// Sum<T>. The logits are overwritten if `gradients` is set.
struct SoftmaxLoss {
  void* logits;
  const std::int64_t* targets;
  void* losses;
  std::int64_t rows, vocabulary, stride;
  bool gradients;
};

/// The largest of some numbers x, and Σ exp(x − largest).
template <class S>
struct ScaledSum {
  S largest, sum;
};

/// Adds the first `count` elements of a pack. The sum is scaled anew only when a pack has a larger number
/// than all before it, so that there is one exponential for each element and one more for few of the packs. A
/// NaN becomes the sum, since no comparison with it is true.
template <class S, class T, int W>
FOMOE_DEVICE void add_pack(ScaledSum<S>& to, const Pack<T, W>& pack, int count) {
  S largest = to.largest;
  for (int w = 0; w < W; ++w) {
    const S value = static_cast<S>(pack.of[w]);
    if (w < count && value > largest) largest = value;
  }
  if (largest > to.largest) {
    to.sum *= std::exp(to.largest - largest);
    to.largest = largest;
  }
  for (int w = 0; w < W; ++w) {
    if (w < count) to.sum += std::exp(static_cast<S>(pack.of[w]) - largest);
  }
}

/// Calls f(pack, i) for each pack that belongs to this member and begins before column `end`, with i its
/// first column. Two packs are read before the first is used, so that more loads are under way.
template <int W, class T, class Team, class F>
FOMOE_DEVICE void own_pairs_of_packs(const Team& team, const T* row, std::int64_t end, const F& f) {
  const std::int64_t step = std::int64_t{W} * team.size();
  std::int64_t i = std::int64_t{W} * team.rank();
  for (; i + step < end; i += 2 * step) {
    const auto first = load<W>(row + i), second = load<W>(row + i + step);
    f(first, i);
    f(second, i + step);
  }
  if (i < end) f(load<W>(row + i), i);
}

/// Largest logit of the row and Σ exp(l − largest).
template <class S, int W, class T, class Team>
FOMOE_DEVICE ScaledSum<S> scaled_sum(const Team& team, const T* logits, std::int64_t vocabulary) {
  // Smaller than any logit, but finite: −∞ − (−∞) would be NaN.
  constexpr S kSmallest = std::numeric_limits<S>::lowest();
  ScaledSum<S> own{kSmallest, 0};
  own_pairs_of_packs<W>(team, logits, vocabulary, [&](const Pack<T, W>& pack, std::int64_t i) {
    if (i + W <= vocabulary) {
      add_pack(own, pack, W);
    } else {
      add_pack(own, pack, static_cast<int>(vocabulary - i));
    }
  });
  const S largest = team.largest(own.largest);
  return {largest, team.sum(own.sum * std::exp(own.largest - largest))};
}

/// W divides the row's stride.
template <class T, int W, class Team>
FOMOE_DEVICE void softmax_loss_row(const Team& team, const SoftmaxLoss& a, std::int64_t row) {
  using S = Sum<T>;
  T* const logits = static_cast<T*>(a.logits) + row * a.stride;
  const std::int64_t target = a.targets[row];
  const bool valid = target >= 0 && target < a.vocabulary;
  // Read before scaled_sum(), behind which members overwrite logits.
  constexpr S kNoLoss = std::numeric_limits<S>::quiet_NaN();
  const S at_target = valid ? static_cast<S>(logits[target]) : kNoLoss;
  const ScaledSum<S> all = scaled_sum<S, W>(team, logits, a.vocabulary);
  if (team.rank() == 0) static_cast<S*>(a.losses)[row] = all.largest + std::log(all.sum) - at_target;
  if (!a.gradients) return;

  const S inverse = 1 / all.sum;
  own_pairs_of_packs<W>(team, logits, a.stride, [&](const Pack<T, W>& pack, std::int64_t i) {
    const auto softmax = [&](int w) { return std::exp(static_cast<S>(pack.of[w]) - all.largest) * inverse; };
    Pack<T, W> out;
    for (int w = 0; w < W; ++w) out.of[w] = static_cast<T>(softmax(w));
    if (i + W > a.vocabulary ||
        (i <= target && target < i + W)) {  // that of the target, and those of padding
      for (int w = 0; w < W; ++w) {
        if (i + w == target) out.of[w] = static_cast<T>(softmax(w) - 1);
        if (i + w >= a.vocabulary) out.of[w] = static_cast<T>(S(0));
      }
    }
    store<W>(logits + i, out);
  });
}

}  // namespace fomoe::trainer
