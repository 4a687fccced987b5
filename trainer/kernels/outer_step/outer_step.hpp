// DiLoCo's outer step (outer_optimizer.hpp) in one pass: θ, the momentum b and the difference d are read
// once, θ and b written once, where LibTorch's operators take five passes and two temporaries.
//
// Not run on a GPU yet: the kernel compiles for sm_90, and tests/trainer/gpu/outer_step_test.cpp waits for a
// machine with one.
#pragma once
#include "trainer/torch.hpp"

namespace fomoe::trainer {

/// In place: momentum ← μ·momentum + difference, anchor ← anchor − η·(difference + μ·momentum).
/// Tensors of one size, contiguous and of one type: fp32, on the CPU also fp64.
void nesterov_step(at::Tensor anchor, at::Tensor momentum, const at::Tensor& difference, double rate,
                   double decay);

/// Whether nesterov_step takes these on a GPU.
bool fits_nesterov_kernel(const at::Tensor& anchor, const at::Tensor& momentum, const at::Tensor& difference);

}  // namespace fomoe::trainer
