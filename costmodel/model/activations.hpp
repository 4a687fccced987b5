// Activation memory: bytes that the forward pass keeps for the backward pass.
//
// The count follows Korthikanti et al. 2022, "Reducing Activation Recomputation in Large Transformer Models"
// (arXiv 2205.05198, section 4), with these changes: there is no dropout, hence no masks; attention keeps no
// matrix of scores (FlashAttention, Dao et al. 2022), hence no 5·a·s²·b; experts, grouped keys and gates are
// added; logits exist for one chunk of tokens at a time. A layer of their model then keeps 32·s·b·h bytes
// instead of s·b·h·(34 + 5·a·s/h). All elements are 16-bit except router scores and logits. Bytes of one
// token in one layer:
//   attention  2·[d + a·d_qk + 2·a_kv·d_qk + a·d_v], the inputs of its products; latents and query/key norms
//              keep their inputs as well
//   norms      2·d each, their inputs
//   dense      2·[d + n·f], n = 3 gated, else 2: input and hidden elements
//   experts    2·[d + k·(2d + n·f) + shared·n·f] + 4·N_e: for each of the k experts a copy of the token, the
//              expert's output and its hidden elements; and the router's scores
#pragma once
#include "costmodel/model/site_model.hpp"

namespace fomoe::costmodel {

/// Size of a chunk of logits, as in the trainer's linear_cross_entropy, which computes them chunk by chunk.
inline constexpr double kLogitChunkBytes = 512.0 * 1024 * 1024;

/// Sets the activation members of `model`; they remain 0 (unknown) for an opaque model.
void count_activations(const ModelShape& shape, SiteModel& model);

/// Activation bytes on a GPU of pipeline stage `stage` (from 0). The stage keeps L/p layers for each of its p
/// − stage micro-batches in flight. With checkpointing it keeps 2·d bytes per token and layer, and one whole
/// layer. The last stage adds the inputs of the outer norms and of the unembedding, and a chunk of logits.
/// The sum is divided by the tensor-parallel degree (sequence parallelism, eq. 4 of the same paper).
template <class V>
V activation_bytes(const SiteModel& model, const V& executed, double micro_batch_sequences, int stage) {
  const double tokens = micro_batch_sequences * model.sequence_length;
  const V moe_layer = model.moe_layer_bytes_per_token + model.bytes_per_token_and_expert * executed;
  const double dense_layers = model.layers - model.moe_layers;
  V kept = dense_layers * model.dense_layer_bytes_per_token + model.moe_layers * moe_layer;
  V working = constant<V>(0);
  if (model.gpus.activation_checkpointing && model.dense_layer_bytes_per_token > 0) {
    kept = constant<V>(model.layers * 2 * model.d_model);
    working = max_of(constant<V>(dense_layers > 0 ? model.dense_layer_bytes_per_token : 0.0),
                     V((model.moe_layers > 0 ? 1.0 : 0.0) * moe_layer));
  }
  const double stages = model.gpus.pipeline_parallel;
  V bytes = tokens * ((stages - stage) / stages * kept + working);
  if (stage + 1 == model.gpus.pipeline_parallel) {
    bytes += constant<V>(tokens * model.outer_norm_bytes_per_token +
                         min_of(kLogitChunkBytes, tokens * model.logit_bytes_per_token));
  }
  return bytes / static_cast<double>(model.gpus.tensor_parallel);
}

}  // namespace fomoe::costmodel
