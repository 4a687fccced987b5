// Unembedding and cross-entropy in one operation that never holds the logits of all tokens at once: with V =
// 200,019 they would be larger than the model.
#pragma once
#include <cstdint>

#include "trainer/model/tied_embedding.hpp"
#include "trainer/torch.hpp"

namespace fomoe::trainer {

/// Mean over tokens of −log softmax(hidden·Eᵀ)[target].
/// hidden [T, d], embedding E [V, d], targets int64 [T] → scalar (fp32; fp64 for fp64 inputs).
/// It works through `chunk_tokens` tokens at a time (0: chosen so that a chunk's logits take at most 512
/// MiB). If a gradient is needed, the forward pass computes it chunk by chunk, from logits that are then
/// dropped; each forward pass permits one backward pass. The gradient is that of `weight`·loss. The backward
/// pass must start at the returned value with gradient 1, since applying a later factor would cost a pass
/// over V·d elements. Another gradient is refused on a CPU; on a GPU it is not checked, because checking
/// would wait for the device.
at::Tensor linear_cross_entropy(const at::Tensor& hidden, const at::Tensor& embedding,
                                const at::Tensor& targets, std::int64_t chunk_tokens = 0,
                                const TiedGradientHandle& tied = {}, double weight = 1);

}  // namespace fomoe::trainer
