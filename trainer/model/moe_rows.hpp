// The routed part of the sparse layer out of the kernels of expert_rows.hpp: no work is done for ghosts but
// the rows' memory, nothing is cleared, and nobody waits for the host.
#pragma once
#include "trainer/kernels/route/route.hpp"
#include "trainer/torch.hpp"

namespace fomoe::trainer {

/// out[t] = Σ_j gates[t, j]·SiLU(x[t]·up[e])·down[e] over the choices j of t whose expert e is here.
/// x [T, d], gates [T, k], up [N_le, d, d_expert], down [N_le, d_expert, d] → [T, d]; contiguous, of one
/// dtype. Has gradients for these four.
at::Tensor experts_by_rows(const at::Tensor& x, const at::Tensor& gates, const at::Tensor& up,
                           const at::Tensor& down, const Route& route);

}  // namespace fomoe::trainer
