// Unembedding and cross-entropy in one operation that never holds the logits of all tokens at once. With a
// vocabulary of V = 200,019 tokens, these logits would be larger than the model.
#pragma once
#include <cstdint>

#include "trainer/model/tied_embedding.hpp"
#include "trainer/torch.hpp"

namespace fomoe::trainer {

/// Mean over T tokens of −log softmax(hidden·Eᵀ)[target], with hidden states of width d.
/// hidden [T, d], embedding E [V, d], targets int64 [T] → scalar (fp32; fp64 for fp64 inputs).
/// The function processes `chunk_tokens` tokens at a time; with 0, it chooses logit_chunk_tokens(). If a
/// gradient is needed, the forward pass already computes the gradient, chunk by chunk, from logits that are
/// then dropped. Each forward pass permits one backward pass. The gradient is that of `weight`·loss. The
/// backward pass must start at the returned value with gradient 1, since applying another factor later would
/// cost a pass over V·d elements. On a CPU, the backward pass refuses any other gradient. On a GPU, the
/// gradient is not checked, because the check would wait for the device.
/// `padded` [V', d], if it is given, has the values of E in its first V rows and zeros in the others. The
/// matrix products then use V' columns; loss and gradients are the same.
/// `own_kernels` computes losses and their gradients with the kernel of softmax_loss.hpp, not with LibTorch's
/// operators.
at::Tensor linear_cross_entropy(const at::Tensor& hidden, const at::Tensor& embedding,
                                const at::Tensor& targets, std::int64_t chunk_tokens = 0,
                                const TiedGradientHandle& tied = {}, double weight = 1,
                                const at::Tensor& padded = {}, bool own_kernels = false);

/// Tokens of a chunk if there are T = `tokens` tokens, each with `row_bytes` bytes of logits: chunks of equal
/// size, of at most 2 GiB on a GPU (costmodel/model/activations.hpp, which counts them in the memory) and 512
/// MiB on a CPU. Each chunk adds to the gradient [V, d], which costs a pass over it.
std::int64_t logit_chunk_tokens(std::int64_t tokens, std::int64_t row_bytes, bool gpu);

/// V', the number of rows of a padded embedding: V rounded up to a multiple of 64. cuBLAS needs rows of
/// logits that start at multiples of 16 bytes for its fast kernels, and with V = 200,019 in bf16 they do not.
/// On an H100, a whole step of the medium model took 71 ms with the padding; without it, its profile gives
/// 138 ms (experiments/measured). Models in fp32 and fp64 are not padded.
std::int64_t padded_vocabulary(std::int64_t vocabulary);

}  // namespace fomoe::trainer
