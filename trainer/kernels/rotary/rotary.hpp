// Rotary positions of q and k straight out of the projection that computes q, k and v together.
//
// Forward: q and k are read and written once, v stays where it is. Backward: the gradients of all three are
// read once and written to their places in that of the projection, where autograd's views would clear and add
// three tensors of its size.
//
// On CUDA float and bf16, computed in fp32. Not run on a GPU yet: the kernels compile for sm_90, and
// tests/trainer/gpu/rotary_test.cpp waits for a machine with one. The CPU's tests run the same row functions.
#pragma once
#include "trainer/kernels/rotary/rope.hpp"
#include "trainer/torch.hpp"

namespace fomoe::trainer {

struct Heads {
  at::Tensor q, k, v;  // [B, S, H, h]; q and k contiguous, v a view of the projection
};

/// projection [B, S, 3, H, h], contiguous: q, k, v; h even. table: of S positions and of its dtype. Has a
/// gradient for the projection.
Heads rotated_heads(const at::Tensor& projection, const RotaryTable& table);

/// The same with rope.hpp.
Heads rotated_heads_of_operators(const at::Tensor& projection, const RotaryTable& table);

}  // namespace fomoe::trainer
