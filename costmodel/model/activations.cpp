#include "costmodel/model/activations.hpp"

#include <algorithm>
#include <cmath>

namespace fomoe::costmodel {

namespace {

constexpr double kHalf = 2;    // bytes of a 16-bit element
constexpr double kSingle = 4;  // bytes of a 32-bit element: router scores

double real(std::int64_t value) { return static_cast<double>(value); }

// Elements per token that a layer of attention and its norms keep for the backward pass, without a gate.
double projected_elements(const ModelShape& shape) {
  const double d = real(shape.d_model), heads = real(shape.heads);
  const double queries = heads * real(query_key_dim(shape)), values = heads * real(value_dim(shape));
  if (shape.latent) {
    // The norms of the latents keep inputs and outputs; keys and values are expanded to all heads.
    const double latents = 2 * real(shape.latent->query_rank + shape.latent->kv_rank);
    return d + latents + real(shape.latent->rope_dim) + 2 * queries + 2 * values;
  }
  if (shape.compressed) {
    // The norms of the latent and of the key keep inputs and outputs; the output's blocks keep their product.
    const CompressedAttention& compressed = *shape.compressed;
    const double head = real(query_key_dim(shape));
    return d + 2 * real(shape.query_rank) + queries + 2 * head + values +
           real(compressed.output_groups * compressed.output_rank);
  }
  const double keys = real(kv_heads(shape) * query_key_dim(shape));
  const double normed = shape.query_key_norm == QueryKeyNorm::none ? 0 : queries + keys;
  return d + 2 * real(shape.query_rank) + queries + 2 * keys + values + normed;
}

double attention_elements(const ModelShape& shape) {
  const double values = real(shape.heads * value_dim(shape));
  // A gate keeps itself and its product with the output of attention.
  double gate = 0;
  if (shape.attention_gate == costmodel::AttentionGate::per_element) gate = 2 * values;
  if (shape.attention_gate == costmodel::AttentionGate::per_head) gate = real(shape.heads) + values;
  // An indexer keeps the queries of its heads and their common key.
  const double indexer =
      shape.indexer && !shape.compressed ? real((shape.indexer->heads + 1) * shape.indexer->dim) : 0;
  return projected_elements(shape) + gate + indexer;
}

// The mean over all layers, of which some may have attention, some linear attention and some neither.
double mixer_elements(const ModelShape& shape) {
  double sum = shape.heads > 0 ? real(attention_layers(shape)) * attention_elements(shape) : 0;
  if (shape.linear) sum += real(shape.linear->layers) * real(linear_layer(*shape.linear, shape.d_model).kept);
  sum += compressing_elements(shape);
  // Each of a layer's two blocks keeps the residual streams that it mixes.
  sum += 2 * real(shape.layers) * real(shape.residual_streams * shape.d_model);
  return shape.layers > 0 ? sum / real(shape.layers) : 0;
}

}  // namespace

double compressing_elements(const ModelShape& shape) {
  if (!shape.compressed) return 0;
  const CompressedAttention& compressed = *shape.compressed;
  const double head = real(query_key_dim(shape));
  double of_sparse = 4 * head;
  if (shape.indexer) of_sparse += real((shape.indexer->heads + 4) * shape.indexer->dim);
  return real(compressed.sparse_layers) * of_sparse + real(compressed.heavy_layers) * 2 * head;
}

void count_activations(const ModelShape& shape, bool experts_here, SiteModel& model) {
  if (shape.opaque) return;
  const double d = real(shape.d_model), matrices = real(ffn_matrices(shape));
  const double rest = mixer_elements(shape) + real(shape.norms_per_layer) * d;
  const double hidden = matrices * real(shape.d_expert);
  // The mean over the layers without experts, of which some may have no feed-forward block at all.
  const double layers_without_experts = real(shape.layers - moe_layers(shape));
  const double with_block =
      layers_without_experts > 0 ? real(dense_ffn_layers(shape)) / layers_without_experts : 1;
  model.dense_layer_bytes_per_token = kHalf * (rest + with_block * (d + matrices * real(shape.d_ffn)));
  model.moe_layer_bytes_per_token = kHalf * (rest + d + matrices * real(shared_width(shape))) +
                                    kSingle * real(shape.experts + shape.identity_experts);
  model.bytes_per_token_and_expert =
      kHalf * (experts_here ? (matrices - 1) * real(shape.d_expert) : 2 * d + hidden);
  model.outer_norm_bytes_per_token = kHalf * d * real(shape.outer_norms + 1);
  model.logit_bytes_per_token = kHalf * real(shape.vocabulary);
}

double micro_batches_in_flight(const SiteModel& model, const SiteLoad& load, int stage) {
  const double here = model.gpus.pipeline_parallel;
  const double behind = here * (load.site_stages - load.site_stage) - static_cast<double>(stage);
  if (model.pipeline_micro_batches == 0) return behind;
  const double all = model.pipeline_micro_batches;
  return model.one_forward_one_backward ? std::min(all, behind) : all;
}

double logit_chunks(const SiteModel& model, double tokens) {
  return std::max(1.0, std::ceil(tokens * model.logit_bytes_per_token / real(kLogitChunkBytes)));
}

double activation_bytes(const SiteModel& model, const SiteLoad& load, double micro_batch_sequences,
                        int stage) {
  const double tokens = micro_batch_sequences * model.sequence_length / model.gpus.context_parallel;
  const double moe_layer = model.moe_layer_bytes_per_token +
                           model.bytes_per_token_and_expert * (model.expert_padding * load.executed_experts);
  const double dense_layers = model.layers - model.moe_layers;
  double kept = dense_layers * model.dense_layer_bytes_per_token + model.moe_layers * moe_layer;
  double working = 0;
  if (model.gpus.activation_checkpointing && model.dense_layer_bytes_per_token > 0) {
    kept += (model.layers * 2 * model.d_model - kept) / static_cast<double>(model.gpus.checkpoint_every);
    working = std::max(dense_layers > 0 ? model.dense_layer_bytes_per_token : 0.0,
                       (model.moe_layers > 0 ? 1.0 : 0.0) * moe_layer);
  }
  const double stages = static_cast<double>(model.gpus.pipeline_parallel) * load.site_stages;
  const double of_stage = uneven_stages(model, load) / stages;
  const double bytes = tokens * (micro_batches_in_flight(model, load, stage) * of_stage * kept + working) +
                       in_last_stage(model, load, stage) *
                           (tokens * model.outer_norm_bytes_per_token +
                            tokens * model.logit_bytes_per_token / logit_chunks(model, tokens));
  return bytes / static_cast<double>(model.gpus.tensor_parallel);
}

}  // namespace fomoe::costmodel
