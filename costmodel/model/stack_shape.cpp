#include "costmodel/model/stack_shape.hpp"

#include <algorithm>
#include <cmath>

#include "costmodel/model/activations.hpp"

namespace fomoe::costmodel {

namespace {

double as_double(std::int64_t value) { return static_cast<double>(value); }

// Output × input of the matrices of attention. One product makes queries, keys and values together.
void add_attention(const ModelShape& shape, StackShape& stack) {
  const double d = as_double(shape.d_model), heads = as_double(shape.heads);
  const auto add = [&](double outputs, double inputs, bool divided) {
    stack.matrices_of_layers.push_back({.outputs = outputs, .inputs = inputs, .divided = divided});
  };
  if (shape.latent) {
    // Matrices of DeepSeek-V2, arXiv 2405.04434, section 2.1.
    const LatentAttention& latent = *shape.latent;
    const double query = heads * as_double(latent.nope_dim + latent.rope_dim);
    if (latent.query_rank > 0) {
      add(as_double(latent.query_rank), d, false);
      add(query, as_double(latent.query_rank), true);
    } else {
      add(query, d, true);
    }
    add(as_double(latent.kv_rank + latent.rope_dim), d, false);
    add(heads * as_double(latent.nope_dim + latent.v_dim), as_double(latent.kv_rank), true);
  } else if (shape.query_rank > 0) {
    add(as_double(shape.query_rank) + stack.keys + stack.values, d, false);
    add(stack.queries, as_double(shape.query_rank), true);
  } else {
    add(stack.queries + stack.keys + stack.values, d, true);
  }
  if (shape.compressed) {
    const double inner = as_double(shape.compressed->output_groups * shape.compressed->output_rank);
    add(as_double(shape.compressed->output_rank), stack.output, true);
    add(d, inner, true);
    return;
  }
  add(d, stack.output, true);
}

void add_feed_forward(double width, LayerMatrix in, StackShape& stack, double d) {
  if (width == 0) return;
  in.outputs = (stack.matrices - 1) * width;
  in.inputs = d;
  stack.matrices_of_layers.push_back(in);
  in.outputs = d;
  in.inputs = width;
  stack.matrices_of_layers.push_back(in);
}

void count_attention(const ModelShape& shape, StackShape& stack) {
  stack.heads = as_double(shape.heads);
  stack.queries = stack.heads * as_double(query_key_dim(shape));
  stack.output = stack.heads * as_double(value_dim(shape));
  // Latents are expanded to keys and values of all heads.
  const double key_heads = shape.latent ? stack.heads : as_double(kv_heads(shape));
  stack.keys = key_heads * as_double(query_key_dim(shape));
  stack.values = key_heads * as_double(value_dim(shape));
  if (shape.latent)
    stack.latent_elements =
        as_double(2 * (shape.latent->query_rank + shape.latent->kv_rank) + shape.latent->rope_dim);
  if (shape.latent)
    stack.expanded = stack.keys - stack.heads * as_double(shape.latent->rope_dim) + stack.values;
  if (shape.compressed) stack.values = 0;  // the key is the value as well
  if (!shape.latent) stack.latent_elements = as_double(2 * shape.query_rank);
  if (shape.query_key_norm != QueryKeyNorm::none) stack.other_elements += stack.queries + stack.keys;
  if (shape.attention_gate == AttentionGate::per_element) stack.other_elements += 2 * stack.output;
  if (shape.attention_gate == AttentionGate::per_head) stack.other_elements += stack.heads + stack.output;
  if (shape.indexer && !shape.compressed)
    stack.other_elements += as_double((shape.indexer->heads + 1) * shape.indexer->dim);
}

}  // namespace

double StackShape::moe_layers_in(double first, double last) const {
  const auto before = [&](double layer) {
    const auto whole = static_cast<std::size_t>(
        std::clamp(std::floor(layer), 0.0, static_cast<double>(moe_layers_before.size()) - 2));
    const double next = moe_layers_before[whole + 1];
    return moe_layers_before[whole] +
           (layer - static_cast<double>(whole)) * (next - moe_layers_before[whole]);
  };
  return moe_layers_before.size() < 2 ? 0 : before(last) - before(first);
}

StackShape stack_shape(const ModelShape& shape, bool router_is_dense) {
  StackShape stack;
  if (shape.opaque || shape.layers == 0) return stack;
  const double d = as_double(shape.d_model), layers = as_double(shape.layers);
  const ParameterCounts counts = count_parameters(shape);
  stack.matrices = as_double(ffn_matrices(shape));
  stack.norms = as_double(shape.norms_per_layer);
  stack.d_expert = as_double(shape.d_expert);
  stack.router_scores = as_double(shape.experts + shape.identity_experts);
  stack.expert_parameters = as_double(counts.expert);
  stack.router_parameters = as_double(counts.router);
  stack.router_is_dense = router_is_dense;
  stack.outer_norm_parameters = as_double(shape.outer_norms) * d;
  stack.vocabulary = as_double(shape.vocabulary);
  stack.tied = shape.tied_embeddings;
  if (shape.heads > 0) {
    count_attention(shape, stack);
    stack.attention_share = as_double(attention_layers(shape)) / layers;
    add_attention(shape, stack);
    for (double* mean : {&stack.heads, &stack.queries, &stack.keys, &stack.values, &stack.output,
                         &stack.expanded, &stack.latent_elements, &stack.other_elements})
      *mean *= stack.attention_share;
  }
  stack.other_elements += compressing_elements(shape) / layers;
  stack.latent_elements += 2 * as_double(shape.residual_streams) * d;  // read by each of a layer's two blocks
  if (shape.linear)
    stack.other_elements +=
        as_double(shape.linear->layers) * as_double(linear_layer(*shape.linear, shape.d_model).kept) / layers;

  const double without_experts = layers - as_double(moe_layers(shape));
  const double with_block = without_experts > 0 ? as_double(dense_ffn_layers(shape)) / without_experts : 0;
  stack.dense.width = with_block * as_double(shape.d_ffn);
  stack.moe.width = as_double(shared_width(shape));
  add_feed_forward(as_double(shape.d_ffn) * (with_block > 0 ? 1 : 0), {.in_moe = false}, stack, d);
  add_feed_forward(stack.moe.width, {.in_dense = false}, stack, d);
  if (shape.experts > 0) add_feed_forward(stack.d_expert, {.in_dense = false, .of_expert = true}, stack, d);

  // Attention, biases and what belongs to no kind of layer count the mean over all layers.
  const double latents =
      shape.latent ? as_double(attention_layers(shape)) * d *
                         as_double(shape.latent->query_rank + shape.latent->kv_rank + shape.latent->rope_dim)
                   : 0;
  const double blocks = as_double(dense_ffn_layers(shape)) * stack.matrices * d * as_double(shape.d_ffn),
               shared = as_double(moe_layers(shape)) * stack.matrices * d * stack.moe.width;
  const double of_all =
      (as_double(counts.attention) - latents + as_double(counts.dense_ffn) - blocks - shared) / layers;
  const double whole = (latents + as_double(counts.norm) - stack.outer_norm_parameters) / layers;
  stack.dense.divided_parameters = of_all + stack.matrices * d * stack.dense.width;
  stack.moe.divided_parameters = of_all + stack.matrices * d * stack.moe.width;
  stack.dense.whole_parameters = stack.moe.whole_parameters = whole;

  stack.moe_layers_before.push_back(0);
  for (std::int64_t layer = 0; layer < shape.layers; ++layer)
    stack.moe_layers_before.push_back(stack.moe_layers_before.back() +
                                      (moe_layer_of_layer(shape, layer) ? 1 : 0));
  return stack;
}

}  // namespace fomoe::costmodel
