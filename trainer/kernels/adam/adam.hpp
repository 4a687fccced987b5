// AdamW's update in one pass over memory: master, moments and gradient are read once, master, moments and the
// copy that computes are written once, 28 B a parameter for bf16 models. LibTorch's fused kernel takes
// gradients of the masters' type and makes no copy, which is 40 B with the casts before and after it.
//
// Not run on a GPU yet: the kernel compiles for sm_90, and tests/trainer/gpu/adam_test.cpp waits for a
// machine with one. The CPU runs the same row function, on one core.
#pragma once
#include <vector>

#include "trainer/torch.hpp"

namespace fomoe::trainer {

/// Lists of one length; of each tensor: master, first and second moment (fp64 or fp32, dense and of one
/// layout), its gradient (their type, or bf16, of the same layout), the bf16 copy that computes (undefined
/// where the model is not bf16), and how many updates there are with this one (fp32 scalar, on the device).
struct AdamTensors {
  std::vector<at::Tensor> masters, moment1, moment2, gradients, copies, updates;
};

struct AdamRates {
  at::Tensor rate;  // fp64 scalar on the device, times rate_scale it is η
  double rate_scale, beta1, beta2, epsilon, weight_decay;
};

/// In place; see adam_row.hpp for the formulas.
void adam_step(const AdamTensors& tensors, const AdamRates& rates);

}  // namespace fomoe::trainer
