#include "costmodel/model/activations.hpp"

namespace fomoe::costmodel {

namespace {

constexpr double kHalf = 2;    // bytes of a 16-bit element
constexpr double kSingle = 4;  // bytes of a 32-bit element: router scores and logits

double real(std::int64_t value) { return static_cast<double>(value); }

// Elements per token that attention and its norms keep for the backward pass.
double attention_elements(const ModelShape& shape) {
  const double d = real(shape.d_model), heads = real(shape.heads);
  const double queries = heads * real(query_key_dim(shape)), values = heads * real(value_dim(shape));
  if (shape.latent) {
    // The norms of the latents keep inputs and outputs; keys and values are expanded to all heads.
    const double latents = 2 * real(shape.latent->query_rank + shape.latent->kv_rank);
    return d + latents + real(shape.latent->rope_dim) + 2 * queries + 2 * values;
  }
  const double keys = real(kv_heads(shape) * query_key_dim(shape));
  const double normed = shape.query_key_norm == QueryKeyNorm::none ? 0 : queries + keys;
  return d + queries + 2 * keys + values + normed;
}

}  // namespace

void count_activations(const ModelShape& shape, SiteModel& model) {
  if (shape.opaque) return;
  const double d = real(shape.d_model), matrices = real(ffn_matrices(shape));
  const double rest = attention_elements(shape) + real(shape.norms_per_layer) * d;
  const double hidden = matrices * real(shape.d_expert);
  model.dense_layer_bytes_per_token = kHalf * (rest + d + matrices * real(shape.d_ffn));
  model.moe_layer_bytes_per_token =
      kHalf * (rest + d + real(shape.shared_experts) * hidden) + kSingle * real(shape.experts);
  model.bytes_per_token_and_expert = kHalf * (2 * d + hidden);
  model.outer_norm_bytes_per_token = kHalf * d * real(shape.outer_norms + 1);
  model.logit_bytes_per_token = kSingle * real(shape.vocabulary);
}

}  // namespace fomoe::costmodel
