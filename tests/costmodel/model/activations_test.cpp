// Tests the activations of a layer, term by term. Expected values name the tensors that the backward pass
// needs.
#include "costmodel/model/activations.hpp"

#include <doctest/doctest.h>

#include "tests/scenarios.hpp"

using namespace fomoe;
using namespace fomoe::costmodel;

namespace {

constexpr double d = 6720, heads = 4, head = d / 4, kHalf = 2, kSingle = 4;

/// divisible_shape without experts: two layers of attention and of a feed-forward block of 32 columns.
ModelShape dense_shape() {
  ModelShape shape = tests::divisible_shape();
  shape.experts = shape.active_experts = shape.d_expert = 0;
  shape.dense_layers = shape.layers;
  shape.d_ffn = 32;
  return shape;
}

SiteModel counted(const ModelShape& shape, bool experts_here = true) {
  SiteModel model;
  count_activations(shape, experts_here, model);
  return model;
}

/// The elements of a token in the mixer of a layer: all but the inputs of four norms, and the input, the
/// up-projection and the activated up-projection of the feed-forward block.
double mixer(const ModelShape& shape) {
  return counted(shape).dense_layer_bytes_per_token / kHalf - 4 * d - (d + 2 * 32);
}

// What attention keeps: its input, queries, keys, values, and the input of its output projection.
constexpr double kInput = d, kQueries = d, kKeys = d, kValues = d, kResult = d;
constexpr double kAttention = kInput + kQueries + kKeys + kValues + kResult;

}  // namespace

TEST_CASE("activations of attention: input, queries, keys, values, result") {
  ModelShape shape = dense_shape();
  CHECK(mixer(shape) == kAttention);
  shape.kv_heads = 1;  // three heads of keys and of values less
  CHECK(mixer(shape) == kAttention - 3 * head - 3 * head);
  shape.head_dim = 100;
  CHECK(mixer(shape) == kInput + heads * 100 + 100 + 100 + heads * 100);
}

TEST_CASE("activations of norms of queries and keys: their inputs beside their outputs") {
  for (const QueryKeyNorm norm : {QueryKeyNorm::per_head, QueryKeyNorm::all_heads}) {
    ModelShape shape = dense_shape();
    shape.query_key_norm = norm;
    CHECK(mixer(shape) == kAttention + kQueries + kKeys);
    shape.kv_heads = 2;
    CHECK(mixer(shape) == kInput + 2 * kQueries + (2 + 1) * 2 * head + kResult);
  }
}

TEST_CASE("activations of a gate on attention's output: the gate, and the product with the result") {
  ModelShape shape = dense_shape();
  shape.attention_gate = AttentionGate::per_element;
  CHECK(mixer(shape) == kAttention + d + kResult);
  shape.attention_gate = AttentionGate::per_head;
  CHECK(mixer(shape) == kAttention + heads + kResult);
}

TEST_CASE(
    "activations of latent attention: the latents before and after their norms, expanded keys and values") {
  ModelShape shape = dense_shape();
  shape.latent = LatentAttention{8, 4, 6, 2, 5};  // ranks 8 and 4; 6 + 2 elements of a key, 5 of a value
  const double queries = heads * (6 + 2), keys = queries, values = heads * 5, result = values;
  const double latents = 2 * 8 + 2 * 4, common_key = 2;
  const double attention = kInput + latents + common_key + queries + keys + values + result;
  CHECK(mixer(shape) == attention);
  // An indexer: the queries of its 3 heads, and their common key, of 7 elements each.
  shape.indexer = SparseIndexer{3, 7, 4};
  CHECK(mixer(shape) == attention + 3 * 7 + 7);
  shape.attention_gate = AttentionGate::per_element;
  CHECK(mixer(shape) == attention + (3 * 7 + 7) + (values + result));
  shape.indexer.reset();
  shape.attention_gate = AttentionGate::per_head;
  CHECK(mixer(shape) == attention + (heads + result));
  shape.attention_gate = AttentionGate::none;
  shape.latent->query_rank = 0;  // queries come from the input itself
  CHECK(mixer(shape) == attention - 2 * 8);
}

TEST_CASE("activations of each kind of linear attention, beside a layer of attention") {
  // What both kinds of layers have in common: the input, and the result before and after its gate.
  const double keys = 2 * 3, values = 4 * 5, channels = keys + keys + values;
  const auto linear = [](LinearKind kind, std::int64_t kernel) {
    ModelShape shape = dense_shape();
    shape.linear = LinearAttention{kind, 1, 2, 3, 4, 5, kernel, 0};
    return 2 * mixer(shape) - kAttention;  // the mean over two layers
  };
  const double common = kInput + 2 * values;
  // A convolution over 4 tokens keeps its inputs and outputs. Decay and step size are a number for each head.
  CHECK(linear(LinearKind::gated_delta, 4) == common + 2 * channels + values + 4 + 4);
  CHECK(linear(LinearKind::kimi_delta, 4) == common + 2 * channels + values + keys + 4);
  CHECK(linear(LinearKind::lightning, 0) == common + channels + values);
  CHECK(linear(LinearKind::mamba2, 4) == common + 2 * channels + values + 4);
  // Input, the product of the first gate before and after the convolution, two gates, the result twice.
  CHECK(linear(LinearKind::short_convolution, 3) == kInput + 2 * d + 2 * d + 2 * d);
}

TEST_CASE("activations of layers without attention or without a feed-forward block") {
  ModelShape shape = dense_shape();
  shape.layers = shape.dense_layers = 4;
  shape.layers_without_attention = 1;
  // Three of four layers have attention.
  CHECK(counted(shape).dense_layer_bytes_per_token == kHalf * (3 * kAttention / 4 + 4 * d + d + 2 * 32));
  shape.layers_without_ffn = 2;
  CHECK(counted(shape).dense_layer_bytes_per_token ==
        kHalf * (3 * kAttention / 4 + 4 * d + (d + 2 * 32) / 2));
  shape.gated = true;  // gate, up-projection and their product
  CHECK(counted(shape).dense_layer_bytes_per_token ==
        kHalf * (3 * kAttention / 4 + 4 * d + (d + 3 * 32) / 2));
}

TEST_CASE("activations of a layer with experts: scores in 32 bits, shared experts, and copies for experts") {
  ModelShape shape = tests::divisible_shape();
  const double outside = kAttention + 4 * d + d;  // with the norms, and the input of router and experts
  SiteModel model = counted(shape);
  CHECK(model.moe_layer_bytes_per_token == kHalf * outside + kSingle * 8);
  CHECK(model.bytes_per_token_and_expert == kHalf * 16);  // fomoe-train keeps what up-projections give
  shape.identity_experts = 3;                             // scores of routes without an expert
  CHECK(counted(shape).moe_layer_bytes_per_token == kHalf * outside + kSingle * (8 + 3));
  shape.shared_experts = 2;
  shape.d_shared = 24;
  shape.gated = true;
  model = counted(shape);
  CHECK(model.moe_layer_bytes_per_token == kHalf * (outside + 3 * 2 * 24) + kSingle * (8 + 3));
  CHECK(model.bytes_per_token_and_expert == kHalf * 2 * 16);  // gate and up-projection, without their product
}

TEST_CASE("activations of experts on other GPUs: copies and answers are kept") {
  ModelShape shape = tests::divisible_shape();
  CHECK(counted(shape, /*experts_here=*/false).bytes_per_token_and_expert ==
        kHalf * (d + 16 + 16 + d));  // copy, up, activated, answer
  shape.gated = true;
  CHECK(counted(shape, /*experts_here=*/false).bytes_per_token_and_expert == kHalf * (d + 3 * 16 + d));
}

TEST_CASE("activations outside of the layers: norms, the input of the unembedding, and logits") {
  ModelShape shape = tests::divisible_shape();
  shape.norms_per_layer = 2;
  shape.outer_norms = 1;
  const SiteModel model = counted(shape);
  CHECK(model.outer_norm_bytes_per_token == kHalf * (d + d));
  CHECK(model.logit_bytes_per_token == kHalf * 100);  // fomoe-train's
  CHECK(model.moe_layer_bytes_per_token == kHalf * (kAttention + 2 * d + d) + kSingle * 8);
}

TEST_CASE("activations of an unknown architecture are not counted") {
  ModelShape shape = tests::divisible_shape();
  shape.opaque = OpaqueCounts{1000, 1000};
  const SiteModel model = counted(shape), none;
  CHECK(model.dense_layer_bytes_per_token == none.dense_layer_bytes_per_token);
  CHECK(model.moe_layer_bytes_per_token == none.moe_layer_bytes_per_token);
  CHECK(model.logit_bytes_per_token == none.logit_bytes_per_token);
}
