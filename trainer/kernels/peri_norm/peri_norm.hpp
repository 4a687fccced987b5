// The end of a residual branch and the start of the next (Peri-LN) in one pass over memory:
//
//   x'     = x + s·LN(y)·h          LN(v) = (v − mean(v))/√(variance(v) + ε), without a bias
//   normed = LN(x')·g
//
// Two LNs and an addition by LibTorch's operators read 4 and write 3 matrices of [T, d]; this reads 2 and
// writes 2. Statistics and sums are fp32 (fp64 for fp64); x' is rounded to its type before its own LN. The
// backward is written by hand (peri_norm_row.hpp) and gives the same bytes each time.
//
// On CUDA float and bf16, rows up to some 19,000 elements. Not run on a GPU yet: the kernels compile for
// sm_90, and tests/trainer/gpu/peri_norm_test.cpp waits for a machine with one. The CPU's tests run the same
// row functions.
#pragma once
#include "trainer/torch.hpp"

namespace fomoe::trainer {

struct PeriNormed {
  at::Tensor sum;     // x' [T, d]
  at::Tensor normed;  // [T, d]
};

/// x, y [T, d], h = out_scale and g = in_scale [d], contiguous and of one dtype; s = branch. Has gradients
/// for these four.
PeriNormed peri_norm(const at::Tensor& x, const at::Tensor& y, const at::Tensor& out_scale,
                     const at::Tensor& in_scale, double branch, double epsilon);

/// The same out of LibTorch's operators.
PeriNormed peri_norm_of_operators(const at::Tensor& x, const at::Tensor& y, const at::Tensor& out_scale,
                                  const at::Tensor& in_scale, double branch, double epsilon);

}  // namespace fomoe::trainer
