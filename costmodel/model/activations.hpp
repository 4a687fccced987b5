// Activation memory of fomoe-train: bytes that the forward pass keeps for the backward pass. That of other
// frameworks is in costmodel/counts.
//
// The count follows Korthikanti et al. 2022, "Reducing Activation Recomputation in Large Transformer Models"
// (arXiv 2205.05198, section 4). In that paper, a is the number of attention heads, s the sequence length, b
// the micro-batch size and h the hidden width. The count here differs from the paper as follows:
//   - There is no dropout, hence there are no dropout masks.
//   - Attention keeps no matrix of scores (FlashAttention, Dao et al. 2022), hence the term 5·a·s²·b is
//     absent.
//   - Experts, grouped keys and gates are added.
//   - Logits exist for one chunk of tokens at a time.
// A layer of the paper's model then keeps 32·s·b·h bytes instead of s·b·h·(34 + 5·a·s/h).
//
// All elements are 16-bit except router scores. Below, d is
// the model's width d_model, d_qk and d_v are the elements per head of a query or key and of a value, and
// a_kv is the number of key and value heads. f is the hidden width of a feed-forward block, and n is its
// number of matrices (3 with a gate, otherwise 2). k of the N_e experts of a layer compute for a token, and
// `shared` experts compute for every token. Bytes of one token in one layer:
//   attention  2·[d + a·d_qk + 2·a_kv·d_qk + a·d_v], the inputs of attention's products; latents and the
//              norms of queries and keys keep their inputs as well
//   norms      2·d for the input of each norm
//   dense      2·[d + n·f], the input and the hidden elements
//   experts    2·[d + k·(n − 1)·f + shared·n·f] + 4·N_e: the hidden elements of the k experts, and the
//              router's scores. The tokens are copied again in the backward pass, which needs no outputs of
//              experts and computes the activation function again (trainer/model/moe_rows.cpp)
//   experts on other GPUs
//              2·[d + k·(2d + n·f) + shared·n·f] + 4·N_e: also a copy of the token and the expert's output
//              for each of the k experts, because they come from other GPUs
//
// A layer with linear attention keeps the elements that linear_attention.hpp counts in place of attention's.
// If layers differ in this, each counts the mean over all layers.
#pragma once
#include <cstdint>

#include "costmodel/model/parallelism.hpp"
#include "costmodel/model/site_model.hpp"

namespace fomoe::costmodel {

/// The most bytes of logits that exist at a time on a GPU: linear_cross_entropy of fomoe-train computes them
/// chunk by chunk.
inline constexpr std::int64_t kLogitChunkBytes = std::int64_t{2} << 30;

/// Chunks of equally many tokens in which the logits of so many tokens are computed.
double logit_chunks(const SiteModel& model, double tokens);

/// Elements per token that the sparse and heavy layers of compressed attention keep for the backward pass
/// beside what all layers of attention keep, in all layers together: keys and gates before they are joined,
/// and the indexer's queries.
double compressing_elements(const ModelShape& shape);

/// Sets the activation members of `model`; they remain 0 (unknown) for an opaque model. `experts_here`: the
/// experts of a token are on the GPU that has the token.
void count_activations(const ModelShape& shape, bool experts_here, SiteModel& model);

/// Micro-batches whose activations a GPU keeps at the same time. A pipeline of P stages with the 1F1B
/// schedule keeps P − i of n micro-batches in its stage i (Narayanan et al. 2021, section 2.2.1), GPipe all
/// n. A pipeline inside a site is assumed to have at least as many micro-batches as stages.
double micro_batches_in_flight(const SiteModel& model, const SiteLoad& load, int stage);

/// Sequences in a micro-batch of one replica. If the sites are pipeline stages, the replicas of a site share
/// each of the n micro-batches of the global batch.
inline double replica_micro_batch(const SiteModel& model, const SiteLoad& load) {
  if (model.pipeline_micro_batches == 0) {
    // No replica has a larger micro-batch than its part of the batch.
    return load.sequences > 0 ? std::min(model.micro_batch_sequences, replica_sequences(model, load))
                              : model.micro_batch_sequences;
  }
  const double shared_by = model.gpus.gpus_per_replica();
  return std::ceil(std::ceil(load.batch_sequences / model.pipeline_micro_batches) * shared_by / load.gpus);
}

/// Experts with buffers of fixed capacity keep padded rows as well (SiteModel::expert_padding).
///
/// Activation bytes on a GPU of pipeline stage `stage` of its site (from 0). The model has L layers and the
/// pipeline has P stages. The stage keeps the activations of L/P layers for each micro-batch in flight. With
/// checkpointing, the stage keeps only 2·d bytes per token and layer, and the activations
/// of one whole layer. The last stage adds the inputs of the outer norms and of the unembedding, and a chunk
/// of logits. The sum is divided by the tensor-parallel degree (sequence parallelism, eq. 4 of the same
/// paper).
double activation_bytes(const SiteModel& model, const SiteLoad& load, double micro_batch_sequences,
                        int stage);

}  // namespace fomoe::costmodel
