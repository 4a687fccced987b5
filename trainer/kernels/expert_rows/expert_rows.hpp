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

/// out[t] = Σ_j gates[t, j]·y[position of (t, j)] over the choices whose experts the site holds.
/// y [T·k, d], gates [T, k] → [T, d].
at::Tensor weighted_sum_of_rows(const at::Tensor& y, const at::Tensor& gates, const Route& route);

/// The gradients of out = weighted_sum_of_rows(y, gates) with y = a·down and a = silu_of_rows(h), from
/// u[p] = d_out[token of p]·downᵀ, the gradient of a for a gate of 1. With the gate g of row p:
///   d_gates = Σ a·u,    d_h = g·u·SiLU'(h),    gated = g·a
/// since Σ y·d_out = Σ a·(down·d_out). So neither y nor rows of d_out times a gate are needed, and the
/// gradient of `down` is the product of gatedᵀ and the rows of d_out. For a ghost, d_gates is 0.
struct GatedSiluGradients {
  at::Tensor d_h, gated;  // [T·k, w]
  at::Tensor d_gates;     // [T, k]
};
GatedSiluGradients gated_silu_backward(const at::Tensor& u, const at::Tensor& h, const at::Tensor& gates,
                                       const Route& route);

}  // namespace fomoe::trainer
