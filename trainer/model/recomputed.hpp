// Activation checkpointing (Chen et al. 2016, "Training Deep Nets with Sublinear Memory Cost"): the forward
// pass keeps only the input of a layer, and the backward pass computes the layer again. The gradients are the
// same, since the operations are.
#pragma once
#include <functional>

#include "trainer/torch.hpp"

namespace fomoe::trainer {

/// What a layer gives: its output, and a scalar that also has gradients, or nothing.
struct LayerOutput {
  at::Tensor output, scalar;
};
/// Computes a layer from its input. `again` says that the backward pass has called it, for the second time.
using LayerOf = std::function<LayerOutput(const at::Tensor& input, bool again)>;

/// layer(input, false), of which nothing but `input` is kept for the backward pass. Everything that `layer`
/// refers to, such as parameters, must live and stay the same until then. `input` must require a gradient.
LayerOutput recomputed(const at::Tensor& input, LayerOf layer);

}  // namespace fomoe::trainer
