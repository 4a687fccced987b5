// Applies rotary positions to q and k directly from the output of the projection that computes q, k and v
// together.
//
// In the forward pass, q and k are read and written once, in their places in the projection, whose own values
// nobody needs afterwards: attention keeps the rotated ones, and the product that made the projection keeps
// its factors. New tensors for q and k would cost 2·d_model elements per token and layer. In the backward
// pass, the gradients of q, k and v are read once and written to their places in the projection's gradient.
// Autograd's views would instead clear and add three tensors of that size.
//
// Sizes: B sequences, S positions, H heads, h elements in each head.
//
// On CUDA, values are fp32 or bf16 and the computation is fp32. The CPU tests run the same row functions.
#pragma once
#include "trainer/rope/rope.hpp"
#include "trainer/torch.hpp"

namespace fomoe::trainer {

struct Heads {
  at::Tensor q, k, v;  // [B, S, H, h], views of the projection if it was rotated in place
};

/// Rotates q and k in place: `projection` must not be used afterwards.
/// `projection` [B, S, 3, H, h] is contiguous and holds q, k and v; h is even. `table` has S positions and
/// the dtype of the projection. The result is differentiable in the projection.
Heads rotated_heads(const at::Tensor& projection, const RotaryTable& table);

/// The same result from rope.hpp.
Heads rotated_heads_of_operators(const at::Tensor& projection, const RotaryTable& table);

}  // namespace fomoe::trainer
