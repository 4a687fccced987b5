// Tests of models beyond the paper's family: dense models, and models of which only parameter counts are
// known.
#include <doctest/doctest.h>

#include "costmodel/compose/check.hpp"
#include "costmodel/compose/make_plan.hpp"
#include "costmodel/counts/memory.hpp"
#include "costmodel/formula/closed_form.hpp"
#include "costmodel/methods/all.hpp"
#include "costmodel/model/flops.hpp"
#include "costmodel/plan/building_blocks.hpp"
#include "costmodel/plan/method.hpp"
#include "platforms/support/input_error.hpp"
#include "tests/scenarios.hpp"

using namespace fomoe;
using namespace fomoe::costmodel;

namespace {

ModelShape opaque(std::int64_t dense, std::int64_t expert, std::int64_t experts, std::int64_t active,
                  std::int64_t layers) {
  ModelShape shape;
  shape.name = shape.architecture = "opaque";
  shape.layers = layers;
  shape.experts = experts;
  shape.active_experts = active;
  shape.sequence_length = 1;
  shape.opaque = OpaqueCounts{dense, expert};
  return shape;
}

ModelShape dense_shape() {
  ModelShape shape = tests::divisible_shape();
  shape.experts = shape.active_experts = shape.d_expert = 0;
  shape.dense_layers = shape.layers;
  shape.d_ffn = 64;
  shape.gated = true;
  return shape;
}

std::int64_t elements(const std::vector<TensorGroup>& groups) {
  std::int64_t sum = 0;
  for (const TensorGroup& group : groups) sum += group.elements;
  return sum;
}

}  // namespace

TEST_CASE("grouped-query attention, gates, biases and norms of heads, counted by hand") {
  ModelShape shape = tests::divisible_shape();
  const std::int64_t d = shape.d_model, L = shape.layers;
  shape.kv_heads = 2;
  shape.head_dim = 10;
  shape.gated = true;
  // Queries and output: 4 heads of 10; keys and values: 2 heads of 10.
  CHECK(count_parameters(shape).attention == L * (2 * d * 40 + 2 * d * 20));
  CHECK(count_parameters(shape).expert == L * 8 * 3 * d * 16);
  shape.qkv_bias = shape.output_bias = shape.sinks = shape.ffn_bias = shape.router_bias = true;
  CHECK(count_parameters(shape).attention == L * (2 * d * 60 + 40 + 2 * 20 + d + 4));
  CHECK(count_parameters(shape).expert == L * 8 * (3 * d * 16 + 2 * 16 + d));
  CHECK(count_parameters(shape).router == L * 8 * (d + 1));
  const std::int64_t norms = count_parameters(shape).norm;
  shape.query_key_norm = QueryKeyNorm::per_head;
  CHECK(count_parameters(shape).norm == norms + L * 2 * 10);
  shape.query_key_norm = QueryKeyNorm::all_heads;
  CHECK(count_parameters(shape).norm == norms + L * (40 + 20));
}

TEST_CASE("FLOPs of a shape with few key heads, an untied unembedding and a window") {
  ModelShape shape = tests::divisible_shape();  // d 6720, L 2, 4 heads, N_e 8, k 2, d_expert 16, V 100, s 10
  shape.kv_heads = 1;
  shape.tied_embeddings = false;
  const double d = 6720, head = 6720 / 4.0;
  const FlopsPerToken flops = flops_per_token(shape, 8, false, FlopsAccounting::mechanism);
  // The embedding look-up costs nothing, so there is one matrix of V·d, tied or not.
  CHECK(flops.dense == 6 * (100 * d + 2 * (2 * d * d + 2 * d * head)));
  CHECK(flops.attention == 12 * 2 * d * 10);  // as many query heads as before
  shape.window_tokens = 3;
  shape.window_layers = 1;
  CHECK(flops_per_token(shape, 8, false, FlopsAccounting::mechanism).attention == 12 * d * (10 + 3));
}

TEST_CASE("active parameters: all parameters except the experts to which a token is not routed") {
  ModelShape shape = tests::divisible_shape();
  const ParameterCounts counts = count_parameters(shape);
  CHECK(active_parameters(shape) == counts.total() - counts.expert * 6 / 8);
  shape.tied_embeddings = false;
  const std::int64_t table = shape.vocabulary * shape.d_model;
  CHECK(active_parameters(shape, true) - active_parameters(shape, false) == table);
}

TEST_CASE("opaque counts: 6 FLOPs per active parameter, and the groups hold every element") {
  const ModelShape shape = opaque(1000, 801, 8, 2, 2);  // 16 experts, one of which has an element more
  CHECK(count_parameters(shape).total() == 1801);
  CHECK(flops_per_token(shape, 8, false, FlopsAccounting::mechanism).total() == 6 * (1000 + 801 * 2 / 8.0));
  Scenario scenario = tests::ideal_scenario("fomoe", 4, 1);
  scenario.model = shape;
  check(scenario);
  const std::vector<TensorGroup> groups = tensor_groups(scenario.model, scenario.strategy.skip_token);
  CHECK(groups.size() == 1 + 16);
  CHECK(elements(groups) == 1801);
  CHECK(groups[1].elements == 51);
  CHECK(groups[2].elements == 50);
}

TEST_CASE("a dense model of which only the number of parameters is known: no expert has any of them") {
  Scenario scenario = tests::ideal_scenario("diloco", 4);
  scenario.model = opaque(1000, 0, 0, 0, 3);
  check(scenario);
  CHECK(expert_elements(scenario.model) == 0);
  CHECK(count_parameters(scenario.model).total() == 1000);
  const std::vector<TensorGroup> groups = tensor_groups(scenario.model, scenario.strategy.skip_token);
  CHECK(groups.size() == 1);
  CHECK(elements(groups) == 1000);
  CHECK(closed_form(scenario).wall_clock_s > 0);
}

TEST_CASE("a dense model: one group, no experts, and no partial replicas") {
  Scenario scenario = tests::ideal_scenario("diloco", 4);
  scenario.model = dense_shape();
  check(scenario);
  const std::int64_t d = 6720;
  CHECK(count_parameters(scenario.model).dense_ffn == 2 * 3 * d * 64);
  CHECK(count_parameters(scenario.model).expert == 0);
  CHECK(tensor_groups(scenario.model, scenario.strategy.skip_token).size() == 1);
  CHECK(elements(tensor_groups(scenario.model, scenario.strategy.skip_token)) ==
        parameters_per_site(scenario));
  // Ring of 4, bf16: 2·3/4 of the model per round, all of it in the class `dense`.
  const PlanSummary summary = summarise(scenario);
  CHECK(summary.sent.dense == 1.5 * 2 * static_cast<double>(parameters_per_site(scenario)));
  CHECK(summary.sent.expert_sync == 0);
  scenario.strategy.method = costmodel::find_method("fomoe");
  CHECK_THROWS_AS(check(scenario), InputError);
}

TEST_CASE("dense layers first: only the layers after them have experts") {
  Scenario scenario = tests::ideal_scenario("fomoe", 4, 2);
  scenario.model.layers = 3;
  scenario.model.dense_layers = 1;
  scenario.model.d_ffn = 64;
  scenario.model.shared_experts = 1;
  check(scenario);
  const std::vector<TensorGroup> groups = tensor_groups(scenario.model, scenario.strategy.skip_token);
  CHECK(groups.size() == 1 + 2 * 8);
  CHECK(groups[1].layer_begin == 1);
  CHECK(groups[9].layer_begin == 2);
  CHECK(elements(groups) == count_parameters(scenario.model).total());
  // The shared expert is dense: every site holds it. A site holds half of the other experts and of the
  // router: O_e/M = 2/4.
  const ParameterCounts counts = count_parameters(scenario.model);
  CHECK(counts.dense_ffn == 2 * 6720 * 64 + 2 * (2 * 6720 * 16));
  CHECK(parameters_per_site(scenario) == counts.dense() + (counts.router + counts.expert) / 2);
  const Plan plan = find_method("fomoe")->plan(scenario);
  CHECK_NOTHROW((void)plan.round(0));
}
