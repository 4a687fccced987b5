// The token lookup of an embedding that is also the unembedding.
//
// Autograd would make two gradients of V·d elements and add them. Backward meets the unembedding first, so
// its gradient is handed on to the lookup, which adds its few rows into it: one buffer, and no pass over V·d
// elements.
#pragma once
#include "trainer/torch.hpp"

namespace fomoe::trainer {

/// The gradient on its way from linear_cross_entropy to tied_lookup. One for each forward.
struct TiedGradient : torch::CustomClassHolder {
  at::Tensor unembedding;  // [V, d]; undefined until backward has been through the loss
};
using TiedGradientHandle = c10::intrusive_ptr<TiedGradient>;

/// Rows of the embedding: embedding [V, d], tokens int64 [T] → [T, d]. Its backward gives the gradient of
/// both uses.
at::Tensor tied_lookup(const at::Tensor& embedding, const at::Tensor& tokens, const TiedGradientHandle& tied);

}  // namespace fomoe::trainer
