// AdamW's update in one pass over memory: master, moments and gradient are read once; master, moments and the
// copy that the forward and backward passes use are written once. That is 28 B per parameter for bf16 models.
// LibTorch's fused kernel needs gradients of the masters' type and writes no copy, which costs 40 B with the
// casts before and after it.
//
// The kernel has not run on a GPU yet: it compiles for sm_90, and tests/trainer/gpu/adam_test.cpp needs a
// machine with a GPU. The CPU runs the same row function, on one core.
#pragma once
#include <vector>

#include "trainer/torch.hpp"

namespace fomoe::trainer {

/// Lists of equal length. For each tensor: master, first and second moment (fp64 or fp32, dense and of one
/// layout); its gradient (of the masters' type or bf16, of the same layout); the bf16 copy that the forward
/// and backward passes use (undefined if the model is not bf16); and the number of updates including this one
/// (fp32 scalar, on the device).
struct AdamTensors {
  std::vector<at::Tensor> masters, moment1, moment2, gradients, copies, updates;
};

struct AdamRates {
  at::Tensor rate;  // fp64 scalar on the device; the learning rate η is rate·rate_scale
  double rate_scale, beta1, beta2, epsilon, weight_decay;
};

/// Updates the tensors in place; adam_row.hpp has the formulas.
void adam_step(const AdamTensors& tensors, const AdamRates& rates);

}  // namespace fomoe::trainer
