// The experts' part of the MoE layer from the kernels of expert_rows.hpp. Ghosts (experts that the site does
// not hold) cost no work, only the memory of their rows. Nothing is cleared, and nothing waits for the host.
// T tokens of width d choose k experts each, and the site holds N_le experts.
#pragma once
#include "trainer/kernels/route/route.hpp"
#include "trainer/torch.hpp"

namespace fomoe::trainer {

/// out[t] = Σ_j gates[t, j]·SiLU(x[t]·up[e])·down[e] over the choices j of token t whose expert e is local.
/// x [T, d], gates [T, k], up [N_le, d, d_expert], down [N_le, d_expert, d] → [T, d]; contiguous and of one
/// dtype. Differentiable in x, gates, up and down.
at::Tensor experts_by_rows(const at::Tensor& x, const at::Tensor& gates, const at::Tensor& up,
                           const at::Tensor& down, const Route& route);

}  // namespace fomoe::trainer
