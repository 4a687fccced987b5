// The arithmetic of peri_norm.hpp for one row that a team works on. It is C++17 without LibTorch, since nvcc
// reads it.
#pragma once
#include <cmath>

#include "trainer/kernels/team.hpp"

namespace fomoe::trainer {

/// All matrices are [rows, d] and the scales [d], of one type T. stats is [rows, 4] of Sum<T>: mean and
/// 1/√(variance + ε) of the row of y, then of the row of x'.
struct PeriNorm {
  const void *x, *y, *out_scale, *in_scale;
  void *sum, *normed, *stats;
  std::int64_t rows, d;
  double branch, epsilon;
};

/// Inputs and outputs of the backward pass of PeriNorm; d_sum and d_normed are the incoming gradients.
/// partial is [teams, 2, d] of Sum<T>: each team's sums over its rows of the gradients of out_scale and of
/// in_scale.
struct PeriNormBackward {
  const void *d_sum, *d_normed, *sum, *y, *out_scale, *in_scale, *stats;
  void *d_x, *d_y, *partial;
  std::int64_t rows, d, teams;
  double branch;
};

/// Number of teams that share a backward pass: four for each multiprocessor of a GPU that has 132.
inline constexpr std::int64_t kPeriNormTeams = 528;

/// Scratch memory of a team, in rows of d elements of Sum<T>.
inline constexpr std::int64_t kPeriNormScratch = 1, kPeriNormBackwardScratch = 3;

template <class S>
struct Moments {
  S mean, inverse;  // inverse = 1/√(variance + ε)
};

/// Mean and 1/√(variance + ε) of row[0 … d − 1], in which each member has written its own packs. The two
/// passes avoid cancellation.
template <int W, class Team, class S>
FOMOE_DEVICE Moments<S> moments(const Team& team, const S* row, std::int64_t d, S epsilon) {
  S total = 0;
  own_packs<W>(team, d, [&](std::int64_t i) {
    const auto value = load<W>(row + i);
    for (int w = 0; w < W; ++w) total += value.of[w];
  });
  const S mean = team.sum(total) / static_cast<S>(d);
  S squares = 0;
  own_packs<W>(team, d, [&](std::int64_t i) {
    const auto value = load<W>(row + i);
    for (int w = 0; w < W; ++w) squares += (value.of[w] - mean) * (value.of[w] - mean);
  });
  return {mean, 1 / std::sqrt(team.sum(squares) / static_cast<S>(d) + epsilon)};
}

/// Forward pass of one row. `kept` is scratch memory of d elements.
template <class T, int W, class Team>
FOMOE_DEVICE void peri_norm_row(const Team& team, const PeriNorm& a, std::int64_t row, Sum<T>* kept) {
  using S = Sum<T>;
  const T *x = static_cast<const T*>(a.x) + row * a.d, *y = static_cast<const T*>(a.y) + row * a.d;
  const T *out_scale = static_cast<const T*>(a.out_scale), *in_scale = static_cast<const T*>(a.in_scale);
  T *sum = static_cast<T*>(a.sum) + row * a.d, *normed = static_cast<T*>(a.normed) + row * a.d;
  const S branch = static_cast<S>(a.branch), epsilon = static_cast<S>(a.epsilon);

  own_packs<W>(team, a.d, [&](std::int64_t i) {
    const auto value = load<W>(y + i);
    Pack<S, W> keep;
    for (int w = 0; w < W; ++w) keep.of[w] = static_cast<S>(value.of[w]);
    store<W>(kept + i, keep);
  });
  const Moments<S> of_y = moments<W>(team, kept, a.d, epsilon);

  // x' = x + s·LN(y) is rounded to T before its own LN, since the backward pass reads the rounded x'.
  own_packs<W>(team, a.d, [&](std::int64_t i) {
    const auto before = load<W>(x + i), scale = load<W>(out_scale + i);
    auto keep = load<W>(kept + i);
    Pack<T, W> after;
    for (int w = 0; w < W; ++w) {
      const S hat = (keep.of[w] - of_y.mean) * of_y.inverse;
      after.of[w] = static_cast<T>(static_cast<S>(before.of[w]) + branch * hat * static_cast<S>(scale.of[w]));
      keep.of[w] = static_cast<S>(after.of[w]);
    }
    store<W>(sum + i, after);
    store<W>(kept + i, keep);
  });
  const Moments<S> of_sum = moments<W>(team, kept, a.d, epsilon);

  own_packs<W>(team, a.d, [&](std::int64_t i) {
    const auto keep = load<W>(kept + i);
    const auto scale = load<W>(in_scale + i);
    Pack<T, W> out;
    for (int w = 0; w < W; ++w) {
      out.of[w] = static_cast<T>((keep.of[w] - of_sum.mean) * of_sum.inverse * static_cast<S>(scale.of[w]));
    }
    store<W>(normed + i, out);
  });
  if (team.rank() == 0) {
    S* stats = static_cast<S*>(a.stats) + 4 * row;
    stats[0] = of_y.mean;
    stats[1] = of_y.inverse;
    stats[2] = of_sum.mean;
    stats[3] = of_sum.inverse;
  }
}

/// Backward pass of rows index, index + teams, … by team `index`. û is the normalised row of x', ŷ that of y,
/// g is in_scale, h is out_scale, and mean() is taken over a row:
///   dû = g·d normed,    dx' = d sum + (dû − mean(dû) − û·mean(dû·û))/σ(x')    d x = dx'
///   dŷ = s·h·dx',       d y = (dŷ − mean(dŷ) − ŷ·mean(dŷ·ŷ))/σ(y)
///   d g = Σ d normed·û over rows,    d h = Σ s·dx'·ŷ over rows
/// scratch has 3·d elements.
template <class T, int W, class Team>
FOMOE_DEVICE void peri_norm_backward_rows(const Team& team, const PeriNormBackward& a, std::int64_t index,
                                          Sum<T>* scratch) {
  using S = Sum<T>;
  S *kept = scratch, *d_out_scale = scratch + a.d, *d_in_scale = scratch + 2 * a.d;
  const T *out_scale = static_cast<const T*>(a.out_scale), *in_scale = static_cast<const T*>(a.in_scale);
  const S branch = static_cast<S>(a.branch), share = 1 / static_cast<S>(a.d);
  own_packs<W>(team, a.d, [&](std::int64_t i) {
    store<W>(d_out_scale + i, Pack<S, W>{});
    store<W>(d_in_scale + i, Pack<S, W>{});
  });

  for (std::int64_t row = index; row < a.rows; row += a.teams) {
    const std::int64_t first = row * a.d;
    const T *d_sum = static_cast<const T*>(a.d_sum) + first,
            *d_normed = static_cast<const T*>(a.d_normed) + first,
            *sum = static_cast<const T*>(a.sum) + first, *y = static_cast<const T*>(a.y) + first;
    T *d_x = static_cast<T*>(a.d_x) + first, *d_y = static_cast<T*>(a.d_y) + first;
    const S* stats = static_cast<const S*>(a.stats) + 4 * row;
    const Moments<S> of_y{stats[0], stats[1]}, of_sum{stats[2], stats[3]};

    S slope = 0, slope_hat = 0;  // Σ dû, Σ dû·û
    own_packs<W>(team, a.d, [&](std::int64_t i) {
      const auto d_n = load<W>(d_normed + i), value = load<W>(sum + i), scale = load<W>(in_scale + i);
      for (int w = 0; w < W; ++w) {
        const S hat = (static_cast<S>(value.of[w]) - of_sum.mean) * of_sum.inverse;
        const S d_hat = static_cast<S>(d_n.of[w]) * static_cast<S>(scale.of[w]);
        slope += d_hat;
        slope_hat += d_hat * hat;
      }
    });
    slope = team.sum(slope) * share;
    slope_hat = team.sum(slope_hat) * share;

    S branch_slope = 0, branch_slope_hat = 0;  // Σ dŷ, Σ dŷ·ŷ
    own_packs<W>(team, a.d, [&](std::int64_t i) {
      const auto d_n = load<W>(d_normed + i), value = load<W>(sum + i), scale = load<W>(in_scale + i),
                 d_s = load<W>(d_sum + i), y_value = load<W>(y + i), y_scale = load<W>(out_scale + i);
      auto d_in = load<W>(d_in_scale + i), d_out = load<W>(d_out_scale + i);
      Pack<T, W> out;
      Pack<S, W> keep;
      for (int w = 0; w < W; ++w) {
        const S hat = (static_cast<S>(value.of[w]) - of_sum.mean) * of_sum.inverse;
        const S d_hat = static_cast<S>(d_n.of[w]) * static_cast<S>(scale.of[w]);
        const S d_value = static_cast<S>(d_s.of[w]) + (d_hat - slope - hat * slope_hat) * of_sum.inverse;
        d_in.of[w] += static_cast<S>(d_n.of[w]) * hat;
        out.of[w] = static_cast<T>(d_value);

        const S y_hat = (static_cast<S>(y_value.of[w]) - of_y.mean) * of_y.inverse;
        d_out.of[w] += branch * d_value * y_hat;
        keep.of[w] = branch * d_value * static_cast<S>(y_scale.of[w]);
        branch_slope += keep.of[w];
        branch_slope_hat += keep.of[w] * y_hat;
      }
      store<W>(d_x + i, out);
      store<W>(kept + i, keep);
      store<W>(d_in_scale + i, d_in);
      store<W>(d_out_scale + i, d_out);
    });
    branch_slope = team.sum(branch_slope) * share;
    branch_slope_hat = team.sum(branch_slope_hat) * share;

    own_packs<W>(team, a.d, [&](std::int64_t i) {
      const auto keep = load<W>(kept + i);
      const auto value = load<W>(y + i);
      Pack<T, W> out;
      for (int w = 0; w < W; ++w) {
        const S hat = (static_cast<S>(value.of[w]) - of_y.mean) * of_y.inverse;
        out.of[w] = static_cast<T>((keep.of[w] - branch_slope - hat * branch_slope_hat) * of_y.inverse);
      }
      store<W>(d_y + i, out);
    });
  }

  S* partial = static_cast<S*>(a.partial) + index * 2 * a.d;
  own_packs<W>(team, a.d, [&](std::int64_t i) {
    store<W>(partial + i, load<W>(d_out_scale + i));
    store<W>(partial + a.d + i, load<W>(d_in_scale + i));
  });
}

}  // namespace fomoe::trainer
