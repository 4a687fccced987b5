// The end of a residual branch and the start of the next branch (Peri-LN) in one pass over memory. x is the
// residual stream, y the output of the branch, s the factor of the branch, and h and g are learnt scales:
//
//   x'     = x + s·LN(y)·h
//   normed = LN(x')·g
//
// LN(v) = (v − mean(v))/√(variance(v) + ε), without a bias. T is the number of tokens and d their width.
//
// With LibTorch's operators, two LNs and an addition read 4 and write 3 matrices of [T, d]; this kernel reads
// 2 and writes 2. Statistics and sums are fp32 (fp64 for fp64 values); x' is rounded to its type before its
// own LN. The backward pass is written by hand (peri_norm_row.hpp) and always gives the same bytes.
//
// On CUDA, values are fp32 or bf16, and rows have at most about 19,000 elements. The
// CPU tests run the same row functions. On an H100, the kernels take 45 to 57 % of the time of LibTorch's
// operators (experiments/measured).
#pragma once
#include "trainer/torch.hpp"

namespace fomoe::trainer {

struct PeriNormed {
  at::Tensor sum;     // x' [T, d]
  at::Tensor normed;  // [T, d]
};

/// x, y [T, d], h = out_scale and g = in_scale [d], contiguous and of one dtype; s = branch. Differentiable
/// in x, y, h and g.
PeriNormed peri_norm(const at::Tensor& x, const at::Tensor& y, const at::Tensor& out_scale,
                     const at::Tensor& in_scale, double branch, double epsilon);

/// The same result from LibTorch's operators.
PeriNormed peri_norm_of_operators(const at::Tensor& x, const at::Tensor& y, const at::Tensor& out_scale,
                                  const at::Tensor& in_scale, double branch, double epsilon);

}  // namespace fomoe::trainer
