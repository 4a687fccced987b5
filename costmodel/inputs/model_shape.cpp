#include "costmodel/inputs/model_shape.hpp"

#include <algorithm>

namespace fomoe::costmodel {

namespace {

struct Projections {
  std::int64_t matrices = 0;
  std::int64_t others = 0;  // elements of biases and sinks
  std::int64_t norms = 0;   // elements of norm scales inside the attention
};

// Matrices of DeepSeek-V2, eqs. 9 to 19, in this order: W^DQ, W^UQ and W^QR; W^DKV and W^KR; W^UK and W^UV;
// W^O. Each latent has a norm.
Projections latent_attention(const ModelShape& shape, const LatentAttention& latent) {
  const std::int64_t d = shape.d_model, query_dim = shape.heads * (latent.nope_dim + latent.rope_dim);
  Projections layer;
  layer.matrices =
      latent.query_rank > 0 ? d * latent.query_rank + latent.query_rank * query_dim : d * query_dim;
  layer.matrices += d * (latent.kv_rank + latent.rope_dim);
  layer.matrices += latent.kv_rank * shape.heads * (latent.nope_dim + latent.v_dim);
  layer.matrices += shape.heads * latent.v_dim * d;
  layer.norms = latent.query_rank + latent.kv_rank;
  if (shape.indexer) {
    // DeepSeek-V3.2: queries from the query latent, one key for all heads with a norm that has a bias, and a
    // weight for each head.
    const SparseIndexer& indexer = *shape.indexer;
    layer.matrices += latent.query_rank * indexer.heads * indexer.dim + d * (indexer.dim + indexer.heads);
    layer.norms += 2 * indexer.dim;
  }
  return layer;
}

std::int64_t gate_columns(const ModelShape& shape) {
  if (shape.attention_gate == AttentionGate::none) return 0;
  return shape.heads * (shape.attention_gate == AttentionGate::per_element ? value_dim(shape) : 1);
}

// The parts that all layers of compressed attention have: queries by their latent, one projection for key and
// value, and the output projection in blocks. Each latent and the key have a norm.
Projections compressed_attention(const ModelShape& shape, const CompressedAttention& compressed) {
  const std::int64_t d = shape.d_model, head = query_key_dim(shape), queries = shape.heads * head;
  Projections layer;
  layer.matrices = d * shape.query_rank + shape.query_rank * queries + d * head;
  layer.matrices += queries * compressed.output_rank + compressed.output_groups * compressed.output_rank * d;
  layer.others = shape.sinks ? shape.heads : 0;
  layer.norms = shape.query_rank + head;
  return layer;
}

// A key of `rate` tokens is their mean by learned gates and by a bias for each position. In sparse layers the
// tokens of the group before contribute as well, with projections of their own (`overlap` = 2).
Projections compressor(std::int64_t d, std::int64_t width, std::int64_t rate, std::int64_t overlap) {
  return {.matrices = 2 * d * overlap * width, .others = rate * overlap * width, .norms = width};
}

// What sparse and heavy layers have beside compressed_attention(), in all layers together.
Projections compressors(const ModelShape& shape) {
  Projections sum;
  if (!shape.compressed) return sum;
  const CompressedAttention& compressed = *shape.compressed;
  const std::int64_t d = shape.d_model, head = query_key_dim(shape);
  const auto add = [&](std::int64_t layers, const Projections& part) {
    sum.matrices += layers * part.matrices;
    sum.others += layers * part.others;
    sum.norms += layers * part.norms;
  };
  add(compressed.sparse_layers, compressor(d, head, compressed.sparse_rate, 2));
  add(compressed.heavy_layers, compressor(d, head, compressed.heavy_rate, 1));
  if (!shape.indexer) return sum;
  const SparseIndexer& indexer = *shape.indexer;
  add(compressed.sparse_layers, compressor(d, indexer.dim, compressed.sparse_rate, 2));
  add(compressed.sparse_layers, {shape.query_rank * indexer.heads * indexer.dim + d * indexer.heads, 0, 0});
  return sum;
}

// Mixing n residual streams of d elements: each block projects all of them to n weights of its input, n of
// its output and n² of the streams among each other, with a bias for each weight and three scales. The
// model's output is one more mixture, with n weights, their biases and one scale.
Projections stream_mixing(const ModelShape& shape) {
  const std::int64_t n = shape.residual_streams, weights = (2 + n) * n, blocks = 2 * shape.layers;
  if (n == 0) return {};
  return {.matrices = (blocks * weights + n) * n * shape.d_model, .others = blocks * (weights + 3) + n + 1};
}

Projections projections(const ModelShape& shape) {
  if (shape.latent) return latent_attention(shape, *shape.latent);
  if (shape.compressed) return compressed_attention(shape, *shape.compressed);
  const std::int64_t d = shape.d_model, head = query_key_dim(shape);
  const std::int64_t queries = shape.heads * head, keys = kv_heads(shape) * head;
  Projections layer;
  layer.matrices = 2 * d * queries + 2 * d * keys;
  if (shape.query_rank > 0) layer.matrices += d * shape.query_rank + shape.query_rank * queries - d * queries;
  if (shape.qkv_bias) layer.others += queries + 2 * keys;
  if (shape.output_bias) layer.others += d;
  if (shape.sinks) layer.others += shape.heads;
  if (shape.query_key_norm == QueryKeyNorm::per_head) layer.norms = 2 * head;
  if (shape.query_key_norm == QueryKeyNorm::all_heads) layer.norms = queries + keys;
  layer.norms += shape.query_rank;
  return layer;
}

Projections attention_layer(const ModelShape& shape) {
  Projections layer = projections(shape);
  layer.matrices += shape.d_model * gate_columns(shape);
  return layer;
}

LinearLayer linear_layer(const ModelShape& shape) {
  return shape.linear ? linear_layer(*shape.linear, shape.d_model) : LinearLayer{};
}

std::int64_t linear_layers(const ModelShape& shape) { return shape.linear ? shape.linear->layers : 0; }

// Elements of the matrices that a MoE layer has beside its router and its experts: the shared experts' gate,
// and the router's columns of identity experts.
std::int64_t moe_layer_extras(const ModelShape& shape) {
  return shape.d_model * ((shape.shared_gate ? 1 : 0) + shape.identity_experts);
}

// The gate and up projections have `width` biases each; the down projection has d.
std::int64_t ffn_elements(const ModelShape& shape, std::int64_t width) {
  const std::int64_t biases = shape.ffn_bias ? (ffn_matrices(shape) - 1) * width + shape.d_model : 0;
  return ffn_matrices(shape) * shape.d_model * width + biases;
}

std::int64_t experts_in_all_layers(const ModelShape& shape) { return moe_layers(shape) * shape.experts; }

ParameterCounts opaque_counts(const ModelShape& shape) {
  ParameterCounts counts;
  counts.dense_ffn = shape.opaque->dense_parameters;
  counts.expert = shape.opaque->expert_parameters;
  return counts;
}

}  // namespace

const std::vector<ModelShape>& presets() {
  //  name, d, L, heads, N_e, k, d_expert, V, sequence
  static const std::vector<ModelShape> all = {
      {"small", 256, 4, 4, 8, 2, 128, 200'019, 2048},      {"medium", 512, 16, 8, 16, 4, 128, 200'019, 2048},
      {"large", 1024, 128, 16, 32, 8, 128, 200'019, 2048}, {"xl", 2048, 256, 32, 64, 16, 128, 200'019, 2048},
      {"xxl", 4096, 512, 64, 128, 32, 128, 200'019, 2048},
  };
  return all;
}

const ModelShape* find_preset(std::string_view name) {
  for (const ModelShape& shape : presets()) {
    if (shape.name == name) return &shape;
  }
  return nullptr;
}

std::int64_t moe_layers(const ModelShape& shape) {
  if (shape.experts == 0) return 0;
  return shape.moe_layer_list.empty() ? shape.layers - shape.dense_layers
                                      : static_cast<std::int64_t>(shape.moe_layer_list.size());
}

std::int64_t dense_ffn_layers(const ModelShape& shape) {
  return shape.layers - moe_layers(shape) - shape.layers_without_ffn;
}

std::int64_t attention_layers(const ModelShape& shape) {
  return shape.layers - linear_layers(shape) - shape.layers_without_attention;
}

std::int64_t layer_of_moe_layer(const ModelShape& shape, std::int64_t i) {
  return shape.moe_layer_list.empty() ? shape.dense_layers + i
                                      : shape.moe_layer_list[static_cast<std::size_t>(i)];
}

std::optional<std::int64_t> moe_layer_of_layer(const ModelShape& shape, std::int64_t layer) {
  const std::vector<std::int64_t>& list = shape.moe_layer_list;
  if (shape.experts == 0) return std::nullopt;
  if (list.empty())
    return layer < shape.dense_layers ? std::nullopt : std::optional(layer - shape.dense_layers);
  const auto found = std::lower_bound(list.begin(), list.end(), layer);
  if (found == list.end() || *found != layer) return std::nullopt;
  return found - list.begin();
}

std::int64_t kv_heads(const ModelShape& shape) { return shape.kv_heads > 0 ? shape.kv_heads : shape.heads; }

std::int64_t query_key_dim(const ModelShape& shape) {
  if (shape.latent) return shape.latent->nope_dim + shape.latent->rope_dim;
  return shape.head_dim > 0 ? shape.head_dim : shape.d_model / shape.heads;
}

std::int64_t value_dim(const ModelShape& shape) {
  return shape.latent ? shape.latent->v_dim : query_key_dim(shape);
}

std::int64_t expert_elements(const ModelShape& shape) {
  if (!shape.opaque) return ffn_elements(shape, shape.d_expert);
  const std::int64_t experts = experts_in_all_layers(shape);
  return experts > 0 ? shape.opaque->expert_parameters / experts : 0;
}

std::int64_t expert_elements(const ModelShape& shape, std::int64_t index) {
  if (!shape.opaque) return expert_elements(shape);
  // The first (total mod count) experts have one element more.
  const std::int64_t larger = shape.opaque->expert_parameters % experts_in_all_layers(shape);
  return expert_elements(shape) + (index < larger ? 1 : 0);
}

std::int64_t router_column_elements(const ModelShape& shape) {
  if (shape.opaque) return 0;
  return shape.d_model + (shape.router_bias ? 1 : 0);
}

ParameterCounts count_parameters(const ModelShape& shape) {
  if (shape.opaque) return opaque_counts(shape);
  const Projections layer = attention_layer(shape);
  const LinearLayer linear = linear_layer(shape);
  const Projections compressing = compressors(shape), mixing = stream_mixing(shape);
  const std::int64_t d = shape.d_model, routed_layers = moe_layers(shape);
  const std::int64_t shared =
      shape.shared_experts * ffn_elements(shape, shape.d_shared > 0 ? shape.d_shared : shape.d_expert);
  ParameterCounts counts;
  counts.embedding = (shape.tied_embeddings ? 1 : 2) * shape.vocabulary * d;
  counts.attention = attention_layers(shape) * (layer.matrices + layer.others) +
                     linear_layers(shape) * (linear.matrices + linear.others) + compressing.matrices +
                     compressing.others;
  counts.dense_ffn = dense_ffn_layers(shape) * ffn_elements(shape, shape.d_ffn) +
                     routed_layers * (shared + moe_layer_extras(shape)) +
                     shape.prediction_modules * 2 * d * d + mixing.matrices + mixing.others +
                     shape.other_parameters;
  if (shape.router_bias) counts.dense_ffn += routed_layers * shape.identity_experts;
  counts.router = experts_in_all_layers(shape) * router_column_elements(shape);
  counts.expert = experts_in_all_layers(shape) * expert_elements(shape);
  // A prediction module has a norm before its layer for each half of the projection, and one after it.
  const std::int64_t norms =
      shape.norms_per_layer * shape.layers + shape.outer_norms + 3 * shape.prediction_modules;
  counts.norm = (shape.norm_bias ? 2 : 1) * d * norms + attention_layers(shape) * layer.norms +
                linear_layers(shape) * linear.norms + compressing.norms;
  return counts;
}

std::int64_t active_parameters(const ModelShape& shape, bool with_embedding_table) {
  const ParameterCounts counts = count_parameters(shape);
  std::int64_t active = counts.dense() + counts.router;
  if (shape.experts > 0) {
    active += shape.opaque ? counts.expert / shape.experts * shape.active_experts +
                                 counts.expert % shape.experts * shape.active_experts / shape.experts
                           : moe_layers(shape) * shape.active_experts * expert_elements(shape);
  }
  // An opaque model of unknown width has a table of 0 elements here.
  const bool table_is_idle = !shape.tied_embeddings && !with_embedding_table;
  return table_is_idle ? active - shape.vocabulary * shape.d_model : active;
}

std::int64_t active_parameters(const ModelShape& shape) {
  return active_parameters(shape, shape.embedding_counts_as_active);
}

MatrixParameters matrix_parameters(const ModelShape& shape) {
  MatrixParameters matrices;
  if (shape.opaque) {
    const std::int64_t table = shape.tied_embeddings ? 0 : shape.vocabulary * shape.d_model;
    matrices.dense = shape.opaque->dense_parameters - table;
    matrices.experts = shape.opaque->expert_parameters;
    return matrices;
  }
  const std::int64_t d = shape.d_model, per_width = ffn_matrices(shape) * d;
  matrices.dense = (1 + shape.prediction_modules) * shape.vocabulary * d +
                   attention_layers(shape) * attention_layer(shape).matrices +
                   linear_layers(shape) * linear_layer(shape).matrices + compressors(shape).matrices +
                   stream_mixing(shape).matrices + dense_ffn_layers(shape) * per_width * shape.d_ffn +
                   moe_layers(shape) * (per_width * shared_width(shape) + moe_layer_extras(shape)) +
                   shape.prediction_modules * 2 * d * d;
  matrices.router = experts_in_all_layers(shape) * d;
  matrices.experts = experts_in_all_layers(shape) * per_width * shape.d_expert;
  return matrices;
}

}  // namespace fomoe::costmodel
