// Cross-entropy of rows of logits and its gradient, in place. l is a row of V logits and t its target:
//
//   loss = log Σ exp(l) − l_t,    d loss/d l = softmax(l) − one-hot(t)
//
// A row may be longer than V: the columns from V on are padding, whose values do not count and whose gradient
// is 0 (padded_vocabulary in cross_entropy.hpp says why).
//
// A first pass finds the largest logit and Σ exp(l − largest) together, and a second pass overwrites the
// logits with the gradient. So the kernel reads each logit twice and writes it once; LibTorch's operators
// read or write it eight to nine times. Without gradients, only the first pass runs. Sums are fp32 (fp64 for
// fp64 logits), and softmax − 1 is rounded once: in bf16, a softmax above 0.998 would be rounded to 1 before
// the subtraction, and the gradient of a target that is nearly certain would be lost.
//
// On CUDA, logits are fp32 or bf16, and a block works on each row. The CPU runs the same row functions, for
// tests.
#pragma once
#include <cstdint>

#include "trainer/torch.hpp"

namespace fomoe::trainer {

/// logits [T, ≥ V], contiguous; targets int64 [T], each from 0 to V − 1; V = `vocabulary` → losses [T] (fp32;
/// fp64 for fp64 logits). The loss of a target outside of the vocabulary is NaN. With `gradients`, the logits
/// become d(Σ losses)/d logits; otherwise they stay as they are.
at::Tensor softmax_losses(at::Tensor& logits, const at::Tensor& targets, std::int64_t vocabulary,
                          bool gradients);

/// The same losses and gradients from LibTorch's operators, which round softmax before they subtract 1. They
/// overwrite the logits in any case.
at::Tensor softmax_losses_of_operators(at::Tensor& logits, const at::Tensor& targets, std::int64_t vocabulary,
                                       bool gradients);

}  // namespace fomoe::trainer
