// Parameters, FLOPs, memory and traffic plans of models with linear attention, experts in some of the layers,
// gates, indexers and prediction modules. Expected values are counted by hand.
#include <doctest/doctest.h>

#include <algorithm>

#include "costmodel/compose/check.hpp"
#include "costmodel/compose/make_plan.hpp"
#include "costmodel/formula/closed_form.hpp"
#include "costmodel/model/activations.hpp"
#include "costmodel/model/flops.hpp"
#include "costmodel/plan/building_blocks.hpp"
#include "costmodel/plan/pieces.hpp"
#include "tests/plan_bytes.hpp"
#include "tests/scenarios.hpp"

using namespace fomoe;
using namespace fomoe::costmodel;

namespace {

constexpr std::int64_t d = 6720;  // d_model of the shape, with L = 2, 4 heads, 8 experts, k = 2, s = 10

/// The shape with a layer of linear attention and a layer of attention.
ModelShape with_linear(LinearAttention linear) {
  ModelShape shape = tests::divisible_shape();
  linear.layers = 1;
  shape.linear = linear;
  return shape;
}

FlopsPerToken flops(const ModelShape& shape) {
  return flops_per_token(shape, static_cast<double>(shape.experts), false, FlopsAccounting::mechanism);
}

/// Four layers, of which the second and the fourth have experts.
ModelShape interleaved() {
  ModelShape shape = tests::divisible_shape();
  shape.layers = 4;
  shape.moe_layer_list = {1, 3};
  shape.d_ffn = 48;
  return shape;
}

}  // namespace

TEST_CASE("gated delta net by hand: projections, convolution, decays, and a state instead of scores") {
  // 2 heads for keys of 3 elements, 4 heads for values of 5 elements, a convolution over 4 tokens.
  const ModelShape shape = with_linear({LinearKind::gated_delta, 0, 2, 3, 4, 5, 4, 0});
  const std::int64_t keys = 2 * 3, values = 4 * 5, channels = 2 * keys + values;
  const std::int64_t matrices = d * (channels + values + 2 * 4) + values * d;
  CHECK(count_parameters(shape).attention == 4 * d * d + matrices + 4 * channels + 2 * 4);
  const std::int64_t norms = d * (4 * 2 + 2);
  CHECK(count_parameters(shape).norm == norms + 5);
  // One layer has scores. The other reads its 3 × 5 states of 4 heads twice and updates them once.
  CHECK(flops(shape).attention == 12.0 * d * 10 + 6.0 * (3 * 4 * 3 * 5 + 4 * channels));
  CHECK(flops(shape).dense == 6.0 * (100 * d + 4 * d * d + matrices));
  ModelShape longer = shape;
  longer.sequence_length = 1000;
  CHECK(flops(longer).attention - flops(shape).attention == 12.0 * d * 990);  // only the layer with scores
}

TEST_CASE("the other kinds of linear attention by hand") {
  const std::int64_t keys = 2 * 3, values = 2 * 5;
  const std::int64_t others = count_parameters(with_linear({})).attention;  // 4·d² and an empty linear layer
  CHECK(others == 4 * d * d);
  const auto attention = [](const LinearAttention& linear) {
    return count_parameters(with_linear(linear)).attention;
  };
  const auto norm = [](const LinearAttention& linear) { return count_parameters(with_linear(linear)).norm; };
  const std::int64_t usual_norms = d * (4 * 2 + 2);

  const LinearAttention lightning{LinearKind::lightning, 0, 2, 5, 2, 5, 0, 0};
  CHECK(attention(lightning) - others == d * 3 * values + d * values + values * d);
  CHECK(norm(lightning) - usual_norms == values);
  CHECK(flops(with_linear(lightning)).attention == 12.0 * d * 10 + 6.0 * 2 * 2 * 5 * 5);

  // Decay and gate of full rank, and of rank 7.
  LinearAttention kimi{LinearKind::kimi_delta, 0, 2, 3, 2, 5, 4, 0};
  const std::int64_t channels = 2 * keys + values;
  const std::int64_t projections = d * channels + d * 2 + values * d, small = 4 * channels + 2 + keys;
  CHECK(attention(kimi) - others == projections + d * keys + d * values + small);
  kimi.gate_rank = 7;
  CHECK(attention(kimi) - others == projections + 2 * d * 7 + 7 * keys + 7 * values + small);
  CHECK(norm(kimi) - usual_norms == 5);

  // 2 groups with a state of 3, 4 heads of 5 elements.
  const LinearAttention mamba{LinearKind::mamba2, 0, 2, 3, 4, 5, 4, 0};
  const std::int64_t inner = 4 * 5, convolved = inner + 2 * keys;
  CHECK(attention(mamba) - others == d * (convolved + inner + 4) + inner * d + (4 + 1) * convolved + 3 * 4);
  CHECK(norm(mamba) - usual_norms == inner);
  CHECK(flops(with_linear(mamba)).attention == 12.0 * d * 10 + 6.0 * (2 * 4 * 3 * 5 + 4 * convolved));

  const LinearAttention conv{LinearKind::short_convolution, 0, 0, 0, 0, 0, 3, 0};
  CHECK(attention(conv) - others == 3 * d * d + d * d + 3 * d);
  CHECK(flops(with_linear(conv)).attention == 12.0 * d * 10 + 6.0 * 3 * d);
}

TEST_CASE("a gate on attention's output, a gated shared expert of its own width, norms with biases") {
  ModelShape shape = tests::divisible_shape();
  const ParameterCounts before = count_parameters(shape);
  shape.attention_gate = AttentionGate::per_element;
  CHECK(count_parameters(shape).attention - before.attention == 2 * d * d);
  shape.attention_gate = AttentionGate::per_head;
  CHECK(count_parameters(shape).attention - before.attention == 2 * d * 4);
  CHECK(flops(shape).dense - flops(tests::divisible_shape()).dense == 6.0 * 2 * d * 4);
  shape.shared_experts = 1;
  shape.d_shared = 24;
  shape.shared_gate = true;
  CHECK(count_parameters(shape).dense_ffn == 2 * (2 * d * 24 + d));
  CHECK(flops(shape).dense - flops(tests::divisible_shape()).dense ==
        6.0 * (2 * d * 4 + 2 * (2 * d * 24 + d)));
  shape.norm_bias = true;
  CHECK(count_parameters(shape).norm == 2 * before.norm);
  shape.other_parameters = 77;
  CHECK(count_parameters(shape).dense_ffn == 2 * (2 * d * 24 + d) + 77);
}

TEST_CASE("an indexer scores all tokens with its own heads, and attention sees the best of them") {
  ModelShape shape = tests::divisible_shape();
  shape.latent = LatentAttention{8, 4, 6, 2, 5};
  const ParameterCounts before = count_parameters(shape);
  const double projections = flops(shape).dense;
  CHECK(flops(shape).attention == 6.0 * 2 * 4 * (8 + 5) * 10);
  shape.indexer = SparseIndexer{3, 7, 4};
  CHECK(count_parameters(shape).attention - before.attention == 2 * (8 * 3 * 7 + d * 7 + d * 3));
  CHECK(count_parameters(shape).norm - before.norm == 2 * 2 * 7);
  CHECK(flops(shape).attention == 6.0 * 2 * (4 * (8 + 5) * 4 + 3 * 7 * 10));
  CHECK(flops(shape).dense - projections == 6.0 * 2 * (8 * 3 * 7 + d * 7 + d * 3));
}

TEST_CASE("a prediction module: a projection, three norms, and the unembedding once more") {
  ModelShape shape = tests::divisible_shape();
  const ParameterCounts before = count_parameters(shape);
  const FlopsPerToken without = flops(shape);
  ++shape.layers;
  shape.prediction_modules = 1;
  const ParameterCounts after = count_parameters(shape);
  CHECK(after.total() - before.total() ==
        4 * d * d + 8 * (d + 2 * d * 16) + 4 * d + 2 * d * d + 3 * d);  // a layer, and what is named above
  CHECK(flops(shape).dense - without.dense == 6.0 * (4 * d * d + 2 * d * d + 100 * d));
  CHECK(flops(shape).expert == 1.5 * without.expert);
}

TEST_CASE("routes that lead to no expert have a column of the router, and no expert") {
  ModelShape shape = tests::divisible_shape();
  const ParameterCounts before = count_parameters(shape);
  shape.identity_experts = 3;
  CHECK(count_parameters(shape).dense_ffn - before.dense_ffn == 2 * 3 * d);
  shape.router_bias = true;
  CHECK(count_parameters(shape).total() - before.total() == 2 * (3 * d + 3 + 8));
}

TEST_CASE("layers with only a feed-forward block, and layers without one") {
  ModelShape shape = tests::divisible_shape();
  shape.layers = 5;  // one with attention, one with linear attention, two with experts, one dense
  shape.linear = LinearAttention{LinearKind::lightning, 1, 2, 5, 2, 5, 0, 0};
  shape.layers_without_attention = 3;
  shape.layers_without_ffn = 2;
  shape.moe_layer_list = {1, 4};
  shape.d_ffn = 48;
  CHECK(attention_layers(shape) == 1);
  CHECK(dense_ffn_layers(shape) == 1);
  CHECK(count_parameters(shape).attention == 4 * d * d + 5 * d * 10);
  CHECK(count_parameters(shape).dense_ffn == 2 * d * 48);
  CHECK(count_parameters(shape).expert == 2 * 8 * 2 * d * 16);
}

TEST_CASE("interleaved experts: their layers, groups and bytes") {
  const ModelShape shape = interleaved();
  CHECK(moe_layers(shape) == 2);
  CHECK(layer_of_moe_layer(shape, 1) == 3);
  CHECK_FALSE(moe_layer_of_layer(shape, 2).has_value());
  CHECK(*moe_layer_of_layer(shape, 3) == 1);
  CHECK(count_parameters(shape).dense_ffn == 2 * 2 * d * 48);
  Scenario scenario = tests::ideal_scenario("fomoe", 4, 2);
  scenario.model = shape;
  check(scenario);
  const std::vector<TensorGroup> groups = tensor_groups(scenario.model, scenario.strategy.skip_token);
  CHECK(groups.size() == 1 + 2 * 8);
  CHECK(groups[1].layer_begin == 1);
  CHECK(groups[9].layer_begin == 3);
  // Tensor by tensor, the router is in the layers with experts.
  for (const std::size_t id : {0U, 9U}) {
    std::int64_t sum = 0;
    for (const std::int64_t elements : tensor_elements(shape, groups[id])) sum += elements;
    CHECK(sum == groups[id].elements);
  }
  // With skip-token the dense group has the routers, which are in two of the four layers.
  scenario.strategy.skip_token = true;
  const std::vector<std::int64_t> tensors =
      tensor_elements(shape, tensor_groups(scenario.model, scenario.strategy.skip_token)[0]);
  CHECK(std::count(tensors.begin(), tensors.end(), 8 * d) == 2);
}

TEST_CASE(
    "interleaved experts and linear attention: for every method the formula sends what the plan sends") {
  int compared = 0;
  for (const Method& method : methods()) {
    for (const bool skip_token : {false, true}) {
      Scenario scenario = tests::every_axis_scenario(std::string(method.name), 4, 2);
      scenario.strategy.skip_token = skip_token;
      ModelShape& shape = scenario.model;
      shape.layers = 4;
      shape.moe_layer_list = {1, 3};
      shape.d_ffn = 48;
      shape.linear = LinearAttention{LinearKind::gated_delta, 2, 2, 4, 2, 4, 4, 0};
      if (at_own_pace(scenario.strategy)) scenario.strategy.staleness = 1;  // else the plan has whole cycles
      if (at_own_pace(scenario.strategy)) continue;  // always: decoupled_diloco_test.cpp
      CAPTURE(method.name);
      const Plan plan = method.plan(scenario);
      const PlanSummary summary = summarise(scenario);
      const SentBytes sent = tests::sent_in_mean_round(plan, 4);
      // Fragments hold whole numbers of elements, so that they differ from equal parts by a few elements.
      CHECK(summary.sent.total() == doctest::Approx(sent.total()).epsilon(1e-6));
      ++compared;
    }
  }
  CHECK(compared >= 2 * 15);
}

TEST_CASE("activations: a layer with linear attention keeps its own elements, and the mean of both counts") {
  ModelShape shape = with_linear({LinearKind::gated_delta, 0, 2, 3, 4, 5, 4, 0});
  shape.experts = shape.active_experts = shape.d_expert = 0;
  shape.dense_layers = shape.layers;
  shape.d_ffn = 32;
  SiteModel model;
  count_activations(shape, /*experts_here=*/true, model);
  const double channels = 2 * 2 * 3 + 4 * 5, values = 4 * 5, gates = values + 2 * 4;
  const double linear = d + 2 * channels + gates + 2 * values, attention = 5.0 * d;
  CHECK(model.dense_layer_bytes_per_token == 2 * ((linear + attention) / 2 + 4 * d + d + 2 * 32));
}
