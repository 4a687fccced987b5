// DiLoCo's outer step (outer_optimizer.hpp) in one pass over memory: the parameters θ, the momentum b and the
// difference d are read once, and θ and b are written once. LibTorch's operators would take five passes and
// two temporaries. On an H100, the kernel runs at the bandwidth of a copy (experiments/measured).
#pragma once
#include "trainer/torch.hpp"

namespace fomoe::trainer {

/// Updates in place, with η = rate and μ = decay: first momentum ← μ·momentum + difference, then anchor ←
/// anchor − η·(difference + μ·momentum). The tensors have one size, are contiguous and of one type: fp32, or
/// on the CPU also fp64.
void nesterov_step(at::Tensor anchor, at::Tensor momentum, const at::Tensor& difference, double rate,
                   double decay);

/// Whether nesterov_step accepts these tensors on a GPU.
bool fits_nesterov_kernel(const at::Tensor& anchor, const at::Tensor& momentum, const at::Tensor& difference);

}  // namespace fomoe::trainer
