// Moves tokens to the rows of their experts and back, and applies the experts' activation, without touching
// the rows of ghosts (experts that the site does not hold).
//
// T is the number of tokens, d the number of elements of a token, and k (`chosen`) the number of experts that
// each token chooses. Slot t·k + j is the j-th choice of token t, and `route` (route.hpp) assigns row
// position[slot] to it. The rows before the last entry of `ends` belong to experts that the site holds. The
// rows from there on belong to ghosts: no function reads or writes them, and their content in a result is
// undefined and may be NaN. The work therefore falls as the share of ghosts grows, and nothing has to be
// cleared.
//
// On CUDA, values are fp32 or bf16. Sums are taken in fp32, in the order of a token's choices, so that
// results do not depend on the order of atomic operations. The CPU runs the same row functions
// (expert_rows_row.hpp) one after the other.
#pragma once
#include <cstdint>

#include "trainer/kernels/route/route.hpp"
#include "trainer/torch.hpp"

namespace fomoe::trainer {

/// rows[p] = x[permutation[p] ÷ k].  x [T, d] → [T·k, d].
at::Tensor rows_of_experts(const at::Tensor& x, const Route& route, std::int64_t chosen);

/// The gradient of rows_of_experts: d_x[t] = Σ_j d_rows[position of (t, j)] over the choices whose experts
/// the site holds. [T·k, d] → [T, d].
at::Tensor rows_of_experts_backward(const at::Tensor& d_rows, const Route& route, std::int64_t chosen);

/// a = SiLU(h) = h·σ(h).  [n, w] → [n, w].
at::Tensor silu_of_rows(const at::Tensor& h, const at::Tensor& ends);

/// The gradient of silu_of_rows: d_h = d_a·σ(h)·(1 + h·(1 − σ(h))).
at::Tensor silu_of_rows_backward(const at::Tensor& d_a, const at::Tensor& h, const at::Tensor& ends);

/// out[t] = Σ_j gates[t, j]·y[position of (t, j)] over the choices whose experts the site holds.
/// y [T·k, d], gates [T, k] → [T, d].
at::Tensor weighted_sum_of_rows(const at::Tensor& y, const at::Tensor& gates, const Route& route);

/// The gradients of weighted_sum_of_rows: d_y[position of (t, j)] = gates[t, j]·d_out[t] and d_gates[t, j] =
/// y[position of (t, j)]·d_out[t]. For a ghost, d_gates[t, j] is 0.
struct WeightedSumGradients {
  at::Tensor d_y;      // [T·k, d]
  at::Tensor d_gates;  // [T, k]
};
WeightedSumGradients weighted_sum_of_rows_backward(const at::Tensor& d_out, const at::Tensor& y,
                                                   const at::Tensor& gates, const Route& route);

}  // namespace fomoe::trainer
