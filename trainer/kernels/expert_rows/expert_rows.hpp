// Moving tokens to the rows of their experts and back, and the experts' activation, without touching ghosts'
// rows.
//
// Slot t·k + j is token t's j-th choice; `route` gives it a row, `position[slot]`. Rows before the last of
// `ends` belong to experts that are here; rows from there on are ghosts', which nobody reads or writes: what
// they hold in a result is undefined, NaN included. So work falls with the share of ghosts, and nothing has
// to be cleared.
//
// On CUDA float and bf16; sums in fp32, in the order of a token's choices, so that results do not depend on
// atomics. The CPU runs the same row functions (expert_rows_row.hpp), one after the other.
//
// Not run on a GPU yet: the kernels compile for sm_90, and tests/trainer/gpu/expert_rows_test.cpp waits for a
// machine with one.
#pragma once
#include <cstdint>

#include "trainer/kernels/route/route.hpp"
#include "trainer/torch.hpp"

namespace fomoe::trainer {

/// rows[p] = x[permutation[p] ÷ k].  x [T, d] → [T·k, d].
at::Tensor rows_of_experts(const at::Tensor& x, const Route& route, std::int64_t chosen);

/// Its gradient: d_x[t] = Σ_j d_rows[position of (t, j)] over choices that are here.  [T·k, d] → [T, d].
at::Tensor rows_of_experts_backward(const at::Tensor& d_rows, const Route& route, std::int64_t chosen);

/// a = SiLU(h) = h·σ(h).  [n, w] → [n, w].
at::Tensor silu_of_rows(const at::Tensor& h, const at::Tensor& ends);

/// d_h = d_a·σ(h)·(1 + h·(1 − σ(h))).
at::Tensor silu_of_rows_backward(const at::Tensor& d_a, const at::Tensor& h, const at::Tensor& ends);

/// out[t] = Σ_j gates[t, j]·y[position of (t, j)] over choices that are here.  y [T·k, d], gates [T, k] → [T,
/// d].
at::Tensor weighted_sum_of_rows(const at::Tensor& y, const at::Tensor& gates, const Route& route);

/// d_y[position of (t, j)] = gates[t, j]·d_out[t];  d_gates[t, j] = y[position of (t, j)]·d_out[t], 0 for a
/// ghost.
struct WeightedSumGradients {
  at::Tensor d_y;      // [T·k, d]
  at::Tensor d_gates;  // [T, k]
};
WeightedSumGradients weighted_sum_of_rows_backward(const at::Tensor& d_out, const at::Tensor& y,
                                                   const at::Tensor& gates, const Route& route);

}  // namespace fomoe::trainer
