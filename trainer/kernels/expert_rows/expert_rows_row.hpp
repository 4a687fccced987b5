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

/// For a choice whose expert the site holds: d_y[row] = gate·d_out[token] and d_gates[slot] =
/// y[row]·d_out[token]. For a ghost: d_gates[slot] = 0.
template <class T, int W, class Team>
FOMOE_DEVICE void sum_rows_backward_of_slot(const Team& team, const T* d_out, const T* y, const T* gates,
                                            const RowRoute& route, std::int64_t d, std::int64_t slot, T* d_y,
                                            T* d_gates) {
  using S = Sum<T>;
  const std::int64_t row = route.position[slot];
  S product = 0;
  if (row < route.here()) {
    const S gate = static_cast<S>(gates[slot]);
    const T* of_token = d_out + slot / route.chosen * d;
    own_packs<W>(team, d, [&](std::int64_t i) {
      const auto d_o = load<W>(of_token + i), value = load<W>(y + row * d + i);
      Pack<T, W> d_row;
      for (int w = 0; w < W; ++w) {
        product += static_cast<S>(value.of[w]) * static_cast<S>(d_o.of[w]);
        d_row.of[w] = static_cast<T>(gate * static_cast<S>(d_o.of[w]));
      }
      store<W>(d_y + row * d + i, d_row);
    });
  }
  product = team.sum(product);
  if (team.rank() == 0) d_gates[slot] = static_cast<T>(product);
}

/// The W elements from i on: SiLU(h) = h·σ(h), or, if d_a is not nullptr, the gradient d_a·σ(h)·(1 + h·(1 −
/// σ(h))).
template <int W, class T>
FOMOE_DEVICE void silu_elements(const T* d_a, const T* h, std::int64_t i, T* out) {
  using S = Sum<T>;
  const auto value = load<W>(h + i);
  const auto upstream = load<W>((d_a == nullptr ? h : d_a) + i);
  Pack<T, W> result;
  for (int w = 0; w < W; ++w) {
    const S z = static_cast<S>(value.of[w]), s = 1 / (1 + std::exp(-z));
    result.of[w] =
        static_cast<T>(d_a == nullptr ? z * s : static_cast<S>(upstream.of[w]) * s * (1 + z * (1 - s)));
  }
  store<W>(out + i, result);
}

}  // namespace fomoe::trainer
