#include "experiments/model_files/rough_size.hpp"

#include <algorithm>

namespace fomoe::scenario {

namespace {

double real(std::int64_t value) { return static_cast<double>(value); }

double attention_of_layer(const costmodel::ModelShape& shape) {
  const double d = real(shape.d_model), heads = real(shape.heads + shape.kv_heads);
  if (!shape.latent) {
    const double head = real(shape.head_dim > 0 ? shape.head_dim : shape.d_model / shape.heads + 1);
    double elements = 5 * d * heads * head + real(shape.query_rank) * (d + heads * head + 1);
    if (shape.compressed) {
      const costmodel::CompressedAttention& compressed = *shape.compressed;
      const double widths = head + (shape.indexer ? real(shape.indexer->dim) : 0);
      elements += real(compressed.output_rank) * (heads * head + real(compressed.output_groups) * d);
      elements += widths * (6 * d + 3 * real(compressed.sparse_rate) + 3 * real(compressed.heavy_rate) + 6);
      if (shape.indexer)
        elements += real(shape.indexer->heads) * (real(shape.query_rank) * real(shape.indexer->dim) + d);
    }
    return elements;
  }
  const costmodel::LatentAttention& latent = *shape.latent;
  const double ranks = real(latent.query_rank) + real(latent.kv_rank) + d;
  double elements =
      3 * ranks * (ranks + heads * (real(latent.nope_dim) + real(latent.rope_dim) + real(latent.v_dim)));
  if (shape.indexer)
    elements += 2 * ranks * (real(shape.indexer->heads) + 1) * (real(shape.indexer->dim) + 1);
  return elements;
}

// linear_attention.hpp: at most four matrices of the model's width, two of the gates' rank, and the
// convolution. The state counts as well, although it has no parameters.
double linear_attention_of_layer(const costmodel::ModelShape& shape) {
  if (!shape.linear) return 0;
  const costmodel::LinearAttention& linear = *shape.linear;
  const double keys = real(linear.key_heads) * real(linear.key_dim);
  const double values = real(linear.value_heads) * real(linear.value_dim), d = real(shape.d_model);
  const double channels = 3 * (keys + values + d + real(linear.value_heads));
  return 4 * channels * (d + real(linear.gate_rank) + real(linear.kernel) + 1) +
         2 * d * real(linear.gate_rank) + 3 * values * (keys + real(linear.key_dim));
}

}  // namespace

double rough_parameters(const costmodel::ModelShape& shape) {
  if (shape.opaque) return real(shape.opaque->dense_parameters) + real(shape.opaque->expert_parameters);
  const double d = real(shape.d_model), width = real(std::max({shape.d_expert, shape.d_ffn, shape.d_shared}));
  const double blocks = real(shape.experts) + real(shape.shared_experts) + 1;
  const double of_layer =
      attention_of_layer(shape) + linear_attention_of_layer(shape) +
      2 * real(shape.residual_streams) * (2 + real(shape.residual_streams)) *
          (real(shape.residual_streams) * d + 4) +
      d * (blocks * (4 * width + 3) + real(shape.identity_experts) + 2 * real(shape.norms_per_layer));
  return d * (2 * real(shape.vocabulary) + 2 * real(shape.outer_norms)) + real(shape.layers) * of_layer +
         real(shape.prediction_modules) * d * (2 * d + 6) + real(shape.other_parameters);
}

}  // namespace fomoe::scenario
