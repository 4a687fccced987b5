// AdamW's update in one pass over memory. Master, moments and gradient are read once; master, moments and the
// copy that the forward and backward passes use are written once. That is 28 B per parameter for bf16 models.
// LibTorch's fused kernel needs gradients of the masters' type and writes no copy. With the casts before and
// after it, LibTorch's kernel costs 40 B per parameter. It also takes one count of updates for each tensor;
// ours takes one for each expert of a tensor.
//
// The CPU runs the same arithmetic. On an H100, the kernel runs at 96 % of a copy's bandwidth
// (experiments/measured).
#pragma once
#include <vector>

#include "trainer/torch.hpp"

namespace fomoe::trainer {

/// Lists of equal length, with one entry for each tensor to update:
///   - masters, moment1, moment2: fp64 or fp32, dense and of one layout.
///   - gradients: All of the masters' type or all bf16, and of the same layout.
///   - copies: The bf16 copy that the forward and backward passes use; undefined if the model is not bf16.
///   - updates: The number of updates including this one: fp32 on the device, a scalar or [experts].
///   - ages: For each expert the number of updates since its restart including this one, and infinity for an
///     expert that never restarted: fp32 [experts] on the device. Undefined if no expert warms up.
///   - expert_dims: The dimension of the tensor that is indexed by the expert, if `updates` is [experts].
/// `ages` and `expert_dims` may be empty lists, if no tensor has experts.
struct AdamTensors {
  std::vector<at::Tensor> masters, moment1, moment2, gradients, copies, updates, ages = {};
  std::vector<std::int64_t> expert_dims = {};
};

struct AdamRates {
  at::Tensor rate;  // fp64 scalar on the device; the learning rate η is rate·rate_scale
  double rate_scale, beta1, beta2, epsilon, weight_decay;
  double warmup = 0;  // number of updates over which the rate of a restarted expert grows to η; 0: none
};

/// Updates the tensors in place; adam_row.hpp has the formulas.
void adam_step(const AdamTensors& tensors, const AdamRates& rates);

}  // namespace fomoe::trainer
