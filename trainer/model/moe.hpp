// The sigma-MoE layer (FoMoE paper, "Federated Mixture-of-Experts"):
//
//   g = σ(x·W_r ÷ τ)
//   y = Σ_{e in top-k of g} g_e·W_down,e SiLU(W_up,e x)
//
// x is a token of width d, W_r the router's matrix, τ its temperature (1 in the paper), g_e the gate of
// expert e, and k the number of experts per token. The temperature does not change which experts are chosen.
// The gates are sigmoids, independent of each other: there is no softmax and no normalisation of the chosen
// gates. There are no biases. An expert that the router may choose but that the site does not hold is a
// ghost: nothing is computed for it, it adds nothing to y, and its router column gets a zero gradient. N_le
// is the number of experts that the site holds in the layer.
#pragma once
#include <cstdint>

#include "trainer/torch.hpp"

namespace fomoe::trainer {

struct MoeLayer {
  at::Tensor router;         // [d, S], where S is the number of experts scored
  at::Tensor up;             // [N_le, d, d_expert]
  at::Tensor down;           // [N_le, d_expert, d]
  at::Tensor local_index;    // int64 [S]: position in `up`, or N_le for a ghost; undefined if S = N_le
  std::int64_t chosen = 0;   // k, the number of experts per token; at most S
  bool own_kernels = false;  // use moe_rows.hpp instead of LibTorch's operators
  double temperature = 1;    // τ
};

/// Statistics of the router, for callers that need them.
struct RouterUse {
  at::Tensor counts;  // int64 [S]; if defined, the number of slots that chose each expert is added
  bool wants_balance = false;
  /// Load-balancing loss S·Σ_e f_e·p_e. S is the number of experts scored, and f_e is the share of slots that
  /// chose expert e. p_e is the mean over tokens of e's gate divided by the sum of all gates. The loss is 1
  /// if all experts are used equally (Fedus et al. 2021, Switch Transformer, eq. 4; the gates are normalised
  /// because they are sigmoids). Gradients flow through p, not through f.
  at::Tensor balance;
};

/// x [T, d] → [T, d]
at::Tensor moe_forward(const at::Tensor& x, const MoeLayer& layer, RouterUse* use = nullptr);

}  // namespace fomoe::trainer
