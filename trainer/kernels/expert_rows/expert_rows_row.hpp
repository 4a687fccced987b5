// The arithmetic of expert_rows.hpp for one row, token or slot that a team works on. It is C++17 without
// LibTorch, since nvcc reads it.
#pragma once
#include <cmath>

#include "trainer/kernels/team.hpp"

namespace fomoe::trainer {

/// A Route (route.hpp) as pointers to the memory of the rows' device; `ends` has `experts` ≥ 1 entries.
struct RowRoute {
  const std::int64_t* permutation;
  const std::int64_t* position;
  const std::int32_t* ends;
  int experts;
  std::int64_t tokens;
  int chosen;

  [[nodiscard]] FOMOE_DEVICE std::int64_t rows() const { return tokens * chosen; }
  /// The number of rows of experts that the site holds; they precede the rows of ghosts.
  [[nodiscard]] FOMOE_DEVICE std::int64_t here() const { return ends[experts - 1]; }
};

/// rows[row] = x[token of the row].
template <class T, int W, class Team>
FOMOE_DEVICE void gather_row(const Team& team, const T* x, const RowRoute& route, std::int64_t d,
                             std::int64_t row, T* rows) {
  if (row >= route.here()) return;
  const T* from = x + route.permutation[row] / route.chosen * d;
  own_packs<W>(team, d, [&](std::int64_t i) { store<W>(rows + row * d + i, load<W>(from + i)); });
}

/// out[token] = Σ gate·y[row] over the token's choices whose experts the site holds, in the order of choices.
/// If gates is nullptr, all gates are 1.
template <class T, int W, class Team>
FOMOE_DEVICE void sum_rows_of_token(const Team& team, const T* y, const T* gates, const RowRoute& route,
                                    std::int64_t d, std::int64_t token, T* out) {
  using S = Sum<T>;
  const std::int64_t first = token * route.chosen, here = route.here();
  own_packs<W>(team, d, [&](std::int64_t i) {
    Pack<S, W> sum{};
    for (std::int64_t slot = first; slot < first + route.chosen; ++slot) {
      const std::int64_t row = route.position[slot];
      if (row >= here) continue;
      const S gate = gates == nullptr ? S(1) : static_cast<S>(gates[slot]);
      const auto value = load<W>(y + row * d + i);
      for (int w = 0; w < W; ++w) sum.of[w] += gate * static_cast<S>(value.of[w]);
    }
    Pack<T, W> rounded;
    for (int w = 0; w < W; ++w) rounded.of[w] = static_cast<T>(sum.of[w]);
    store<W>(out + token * d + i, rounded);
  });
}

/// The W elements from i on: SiLU(h) = h·σ(h).
template <int W, class T>
FOMOE_DEVICE void silu_elements(const T* h, std::int64_t i, T* out) {
  using S = Sum<T>;
  const auto value = load<W>(h + i);
  Pack<T, W> result;
  for (int w = 0; w < W; ++w) {
    const S z = static_cast<S>(value.of[w]), s = 1 / (1 + std::exp(-z));
    result.of[w] = static_cast<T>(z * s);
  }
  store<W>(out + i, result);
}

/// Tensors of gated_silu_backward (expert_rows.hpp): u, h, d_h and gated are [T·k, width], gates and d_gates
/// [T, k], all of one type T.
struct GatedSilu {
  const void *u, *h, *gates;
  void *d_h, *gated, *d_gates;
  std::int64_t width;
};

/// For a row of an expert that the site holds, with gate g, a = SiLU(h) and the slot of the row:
///   d_gates[slot] = Σ a·u,    d_h = g·u·SiLU'(h),    gated = g·a,    SiLU'(h) = σ(h)·(1 + h·(1 − σ(h)))
/// For the row of a ghost: d_gates[slot] = 0.
template <class T, int W, class Team>
FOMOE_DEVICE void gated_silu_backward_of_row(const Team& team, const GatedSilu& a, const RowRoute& route,
                                             std::int64_t row) {
  using S = Sum<T>;
  const std::int64_t slot = route.permutation[row];
  S product = 0;
  if (row < route.here()) {
    const S gate = static_cast<S>(static_cast<const T*>(a.gates)[slot]);
    const std::int64_t first = row * a.width;
    const T *u = static_cast<const T*>(a.u) + first, *h = static_cast<const T*>(a.h) + first;
    T *d_h = static_cast<T*>(a.d_h) + first, *gated = static_cast<T*>(a.gated) + first;
    own_packs<W>(team, a.width, [&](std::int64_t i) {
      const auto slope = load<W>(u + i), value = load<W>(h + i);
      Pack<T, W> d_value, weighted;
      for (int w = 0; w < W; ++w) {
        const S z = static_cast<S>(value.of[w]), s = 1 / (1 + std::exp(-z)), x = static_cast<S>(slope.of[w]);
        product += z * s * x;
        d_value.of[w] = static_cast<T>(gate * x * s * (1 + z * (1 - s)));
        weighted.of[w] = static_cast<T>(gate * z * s);
      }
      store<W>(d_h + i, d_value);
      store<W>(gated + i, weighted);
    });
  }
  product = team.sum(product);
  if (team.rank() == 0) static_cast<T*>(a.d_gates)[slot] = static_cast<T>(product);
}

}  // namespace fomoe::trainer
