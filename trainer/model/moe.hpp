// The sigma-MoE layer (FoMoE paper, "Federated Mixture-of-Experts"):
//
//   g = σ(x·W_r)                         sigmoid gates, independent of each other
//   y = Σ_{e in top-k of g} g_e·W_down,e SiLU(W_up,e x)
//
// No softmax, no normalisation of the chosen gates, no biases. An expert that the router may choose but the
// site does not hold is a ghost: nothing is computed for it, it adds nothing to y, and its router column gets
// a zero gradient.
#pragma once
#include <cstdint>

#include "trainer/torch.hpp"

namespace fomoe::trainer {

struct MoeLayer {
  at::Tensor router;         // [d, S], S experts scored
  at::Tensor up;             // [N_le, d, d_expert]
  at::Tensor down;           // [N_le, d_expert, d]
  at::Tensor local_index;    // int64 [S]: position in `up`, or N_le for a ghost; undefined where S = N_le
  std::int64_t chosen = 0;   // k, at most S
  bool own_kernels = false;  // moe_rows.hpp instead of LibTorch's operators
};

/// What the router did, where somebody asks.
struct RouterUse {
  at::Tensor counts;  // int64 [S], where defined: slots that chose the expert are added
  bool wants_balance = false;
  /// Load-balancing loss, S·Σ_e f_e·p_e with f_e the share of slots that chose e and p_e the mean over tokens
  /// of its gate's share of all gates: 1 where all are alike (Fedus et al. 2021, Switch Transformer, eq. 4,
  /// with gates normalised because they are sigmoids). Its gradient goes through p.
  at::Tensor balance;
};

/// x [T, d] → [T, d]
at::Tensor moe_forward(const at::Tensor& x, const MoeLayer& layer, RouterUse* use = nullptr);

}  // namespace fomoe::trainer
