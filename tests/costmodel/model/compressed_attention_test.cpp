// Parameters, FLOPs and activations of low-rank queries, compressed attention, residual streams and Mamba.
// Expected values are counted by hand.
#include <doctest/doctest.h>

#include "costmodel/model/activations.hpp"
#include "costmodel/model/flops.hpp"
#include "costmodel/model/site_model.hpp"
#include "costmodel/model/stack_shape.hpp"
#include "tests/scenarios.hpp"

using namespace fomoe;
using namespace fomoe::costmodel;

namespace {

constexpr std::int64_t d = 6720;  // d_model of the shape, with L = 2, 4 heads, 8 experts, k = 2, s = 10

/// One layer with compressed keys of 2 tokens, of which attention sees the best 3, and one with keys of 5
/// tokens. Both see a window of 4 tokens. Heads have 6 elements; queries have rank 7; the output has 2 blocks
/// of 3 columns; the indexer has 5 heads of 9 elements.
ModelShape compressed() {
  ModelShape shape = tests::divisible_shape();
  shape.head_dim = 6;
  shape.kv_heads = 1;
  shape.query_rank = 7;
  shape.compressed = CompressedAttention{1, 2, 1, 5, 2, 3};
  shape.indexer = SparseIndexer{5, 9, 3};
  shape.window_tokens = 4;
  shape.window_layers = 2;
  return shape;
}

double attention_flops(const ModelShape& shape) { return full_replica_flops(shape).attention; }

}  // namespace

TEST_CASE("low-rank queries by hand: two matrices and a norm instead of one matrix") {
  ModelShape shape = tests::divisible_shape();
  const ParameterCounts before = count_parameters(shape);
  const MatrixParameters matrices = matrix_parameters(shape);
  shape.query_rank = 7;
  const std::int64_t change = d * 7 + 7 * d - d * d;  // 4 heads of d ÷ 4 elements
  CHECK(count_parameters(shape).attention - before.attention == 2 * change);
  CHECK(count_parameters(shape).norm - before.norm == 2 * 7);
  CHECK(matrix_parameters(shape).dense - matrices.dense == 2 * change);
  CHECK(attention_flops(shape) == attention_flops(tests::divisible_shape()));  // scores have the same heads
}

TEST_CASE("compressed attention by hand: parameters") {
  const ModelShape shape = compressed();
  const std::int64_t queries = 4 * 6;
  const std::int64_t layer = d * 7 + 7 * queries + d * 6 + queries * 3 + 2 * 3 * d;
  // Key and gate of a token, also for the group after its own; the indexer's have 9 elements. Biases of the
  // positions.
  const std::int64_t sparse = 2 * d * 2 * 6 + 2 * d * 2 * 9 + 7 * 5 * 9 + d * 5, heavy = 2 * d * 6;
  const std::int64_t biases = 2 * 2 * 6 + 2 * 2 * 9 + 5 * 6;
  CHECK(count_parameters(shape).attention == 2 * layer + sparse + heavy + biases);
  const std::int64_t usual_norms = d * (4 * 2 + 2);
  CHECK(count_parameters(shape).norm == usual_norms + 2 * (7 + 6) + 6 + 9 + 6);
  const std::int64_t tied_table = 100 * d;
  CHECK(matrix_parameters(shape).dense == tied_table + 2 * layer + sparse + heavy);
  ModelShape with_sinks = shape;
  with_sinks.sinks = true;
  CHECK(count_parameters(with_sinks).attention - count_parameters(shape).attention == 2 * 4);
}

TEST_CASE("compressed attention by hand: scores of a window, of selected keys and of all keys") {
  ModelShape shape = compressed();
  // 4 heads of 6 elements for scores and for values. Of 10 tokens, 4 are in the window; there are 5 keys of 2
  // tokens, of which 3 are seen and all are scored, and 2 keys of 5 tokens.
  CHECK(attention_flops(shape) == 6.0 * (4 * 2 * 6 * (2 * 4 + 3 + 2) + 5 * 9 * 5));
  shape.sequence_length = 100;
  CHECK(attention_flops(shape) == 6.0 * (4 * 2 * 6 * (2 * 4 + 3 + 20) + 5 * 9 * 50));
  shape.indexer.reset();
  CHECK(attention_flops(shape) == 6.0 * (4 * 2 * 6 * (2 * 4 + 50 + 20)));
}

TEST_CASE("compressed attention by hand: a key is seen once all of its tokens have passed") {
  ModelShape shape = compressed();
  // Of 10 tokens: windows of 4 have 34 pairs. Token t sees t/2 keys of two tokens: 0 1 1 2 2 3 3 4 4 5, of
  // which 25 are scored and at most 3 each, 21, are seen. Keys of five tokens: one for tokens 5 to 9, two for
  // the last.
  const FlopsPerToken causal = causal_flops(shape, full_replica_flops(shape));
  CHECK(causal.attention ==
        doctest::Approx(6.0 * (4 * 2 * 6 * (2 * 34 + 21 + 7) + 5 * 9 * 25) / 10).epsilon(1e-12));
  shape.indexer.reset();
  CHECK(causal_flops(shape, full_replica_flops(shape)).attention ==
        doctest::Approx(6.0 * 4 * 2 * 6 * (2 * 34 + 25 + 7) / 10).epsilon(1e-12));
}

TEST_CASE("residual streams by hand: weights of mixing for two blocks of each layer, and for the output") {
  ModelShape shape = tests::divisible_shape();
  const ParameterCounts before = count_parameters(shape);
  shape.residual_streams = 3;
  const std::int64_t weights = (2 + 3) * 3;
  const std::int64_t matrices = (2 * 2 * weights + 3) * 3 * d;
  CHECK(count_parameters(shape).dense_ffn - before.dense_ffn == matrices + 2 * 2 * (weights + 3) + 3 + 1);
  CHECK(full_replica_flops(shape).dense - full_replica_flops(tests::divisible_shape()).dense ==
        6.0 * matrices);
}

TEST_CASE("Mamba by hand: a state for each channel, and norms of the time step, B and C") {
  ModelShape shape = tests::divisible_shape();
  const std::int64_t norms = count_parameters(shape).norm;
  // 1 layer; states of 3 elements; 20 channels; a convolution over 4 tokens; time steps of rank 5.
  shape.linear = LinearAttention{LinearKind::mamba1, 1, 1, 3, 1, 20, 4, 5};
  const std::int64_t matrices = 2 * d * 20 + 20 * (5 + 2 * 3) + 5 * 20 + 20 * d;
  const std::int64_t others = 20 * 4 + 20 + 20 + 20 * 3 + 20;  // convolution and biases, decays, D
  CHECK(count_parameters(shape).attention == 4 * d * d + matrices + others);
  CHECK(count_parameters(shape).norm - norms == 5 + 3 + 3);
  CHECK(attention_flops(shape) == 12.0 * d * 10 + 6.0 * (2 * 20 * 3 + 20 * 4));
}

TEST_CASE("what compressed attention, streams and Mamba keep for the backward pass") {
  const auto kept = [](const ModelShape& shape) {
    SiteModel model;
    count_activations(shape, false, model);
    return model.moe_layer_bytes_per_token / 2;  // elements of 2 bytes; both layers have experts
  };
  const auto mixer = [&](const ModelShape& shape) {
    ModelShape without = shape;
    without.heads = 0;
    without.compressed.reset();
    without.indexer.reset();
    without.linear.reset();
    without.residual_streams = 0;
    return kept(shape) - kept(without);
  };
  ModelShape shape = compressed();
  // Input, latent and key before and after their norms, queries, result, the output's blocks; then the mean
  // of both layers: keys and gates of 2 · 6 elements with the indexer's queries, keys and gates, and of 6
  // elements.
  const double layer = d + 2 * 7 + 24 + 2 * 6 + 24 + 2 * 3;
  CHECK(mixer(shape) == layer + (4 * 6 + 5 * 9 + 4 * 9 + 2 * 6) / 2.0);
  shape.residual_streams = 3;
  CHECK(mixer(shape) == layer + (4 * 6 + 5 * 9 + 4 * 9 + 2 * 6) / 2.0 + 2 * 3 * d);
  ModelShape mamba = tests::divisible_shape();
  mamba.linear = LinearAttention{LinearKind::mamba1, 2, 1, 3, 1, 20, 4, 5};
  // Input; channels before and after the convolution; gate, latent of the time step, B, C, time steps;
  // result.
  CHECK(mixer(mamba) == d + 2 * 20 + 20 + (5 + 2 * 3) + 20 + 2 * 20);
}

TEST_CASE("the layout of training frameworks has the matrices of compressed attention") {
  const StackShape stack = stack_shape(compressed(), false);
  double attention = 0;
  for (const LayerMatrix& matrix : stack.matrices_of_layers) {
    if (!matrix.of_expert && matrix.in_dense && matrix.in_moe) attention += matrix.outputs * matrix.inputs;
  }
  CHECK(attention == d * 7 + 7 * 24 + d * 6 + 24 * 3 + 2 * 3 * d);
  CHECK(stack.latent_elements == 2 * 7);
  CHECK(stack.values == 0);  // the key is the value
}
