// The token lookup of an embedding matrix that is also the unembedding.
//
// For a vocabulary of V tokens and width d, autograd would make two gradients of V·d elements and add them.
// The backward pass reaches the unembedding first. Its gradient is therefore handed on to the lookup, which
// adds the gradient of the few rows that it has read. This needs one buffer, and no pass over V·d elements.
#pragma once
#include "trainer/torch.hpp"

namespace fomoe::trainer {

/// Hands the gradient from linear_cross_entropy to tied_lookup. Each forward pass needs its own.
struct TiedGradient : torch::CustomClassHolder {
  at::Tensor unembedding;  // [V, d]; undefined until the backward pass has gone through the loss
};
using TiedGradientHandle = c10::intrusive_ptr<TiedGradient>;

/// Looks up rows of the embedding: embedding [V, d], tokens int64 [T] → [T, d]. Its backward pass returns the
/// gradient of both uses of the embedding.
at::Tensor tied_lookup(const at::Tensor& embedding, const at::Tensor& tokens, const TiedGradientHandle& tied);

}  // namespace fomoe::trainer
