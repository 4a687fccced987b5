// Unembedding and cross-entropy in one operation that never holds the logits of all tokens: with V = 200,019
// those would be larger than the model.
#pragma once
#include <cstdint>

#include "trainer/model/tied_embedding.hpp"
#include "trainer/torch.hpp"

namespace fomoe::trainer {

/// Mean over tokens of −log softmax(hidden·Eᵀ)[target].
/// hidden [T, d], embedding E [V, d], targets int64 [T] → scalar (fp32; fp64 for fp64 inputs).
/// Works through `chunk_tokens` tokens at a time (0: chosen so that a chunk's logits take at most 512 MiB).
/// Where a gradient will be wanted it is computed chunk by chunk in the forward, from logits that are then
/// dropped; one backward per forward. The gradient is that of `weight`·loss, and backward has to start at
/// what is returned, with gradient 1: a factor that came later would cost a pass over V·d elements. A CPU
/// refuses another; on a GPU, asking would mean waiting.
at::Tensor linear_cross_entropy(const at::Tensor& hidden, const at::Tensor& embedding,
                                const at::Tensor& targets, std::int64_t chunk_tokens = 0,
                                const TiedGradientHandle& tied = {}, double weight = 1);

}  // namespace fomoe::trainer
