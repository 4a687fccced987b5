// Tests of tensors and pieces: the sizes of tensors add up, and each call of a collective sends the right
// tensors.
#include "costmodel/plan/pieces.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <numeric>

#include "costmodel/plan/method.hpp"
#include "tests/plan_bytes.hpp"
#include "tests/scenarios.hpp"

using namespace fomoe;
using namespace fomoe::costmodel;

TEST_CASE("the tensors of every group of every preset add up to the group's elements") {
  for (const ModelShape& shape : presets()) {
    Scenario scenario = tests::ideal_scenario("fomoe", 2, 1);
    scenario.model = shape;
    for (const TensorGroup& group : tests::plan_of(scenario).groups) {
      const auto tensors = tensor_elements(shape, group);
      REQUIRE(std::accumulate(tensors.begin(), tensors.end(), std::int64_t{0}) == group.elements);
      REQUIRE(*std::min_element(tensors.begin(), tensors.end()) >
              0);  // an empty one would be a call of its own
    }
  }
}

TEST_CASE(
    "a dense group by hand: the table, then each layer's 4 projections and norms, then the other tensors") {
  const Scenario scenario = tests::ideal_scenario("diloco", 2);  // d = 6720, 2 layers, V = 100
  const auto tensors = tensor_elements(scenario.model, tests::plan_of(scenario).groups.front());
  const std::int64_t d = 6720;
  std::vector<std::int64_t> expected = {100 * d};
  for (int layer = 0; layer < 2; ++layer) {
    expected.insert(expected.end(), 4, d * d);
    expected.insert(expected.end(), 4, d);
  }
  expected.push_back(2 * d);  // the two norms outside of the layers
  CHECK(tensors == expected);
}

TEST_CASE(
    "a group that its tensors fill by hand: an expert's column of the router and its projections, no more") {
  Scenario scenario = tests::ideal_scenario("fomoe", 2, 1);  // d = 6720, 2 layers of 8 experts of width 16
  const std::int64_t d = 6720;
  const auto groups = tests::plan_of(scenario).groups;
  REQUIRE(groups.size() == 1 + 2 * 8);
  for (std::size_t id = 1; id < groups.size(); ++id)
    CHECK(tensor_elements(scenario.model, groups[id]) == std::vector<std::int64_t>{d, 16 * d, 16 * d});
  scenario.model.gated = true;  // gate, up, down
  const auto gated = tests::plan_of(scenario).groups;
  for (std::size_t id = 1; id < gated.size(); ++id)
    CHECK(tensor_elements(scenario.model, gated[id]) == std::vector<std::int64_t>{d, 16 * d, 16 * d, 16 * d});
}

TEST_CASE("pieces: one call, one per tensor, or one per bucket of tensors") {
  Scenario scenario = tests::ideal_scenario("diloco", 2);
  const Plan plan = tests::plan_of(scenario);
  CHECK_FALSE(pieces_of(scenario, plan));
  scenario.strategy.granularity = Granularity::tensor;
  const Payload dense = std::get<Transfer>(plan.round(0).ops[1].what).exchanges.front().payloads.front();
  const auto tensors = pieces_of(scenario, plan)(dense);
  CHECK(tensors.size() == 18);
  scenario.strategy.bucket_bytes = 2 * 100 * 6720 / 4;  // a quarter of the embedding table, in bf16
  const auto cut = pieces_of(scenario, plan)(dense);
  CHECK(cut.size() > tensors.size() + 3);
  CHECK(cut[0] == 100 * 6720 / 4);
  CHECK(std::accumulate(cut.begin(), cut.end(), std::int64_t{0}) == dense.elements);
}

TEST_CASE("a group of several experts by hand: each expert has its own projections") {
  TensorGroup group;  // d = 6720, experts of width 16
  group.classes = {TensorClass::expert};
  group.layer_begin = 0;
  group.layer_end = 2;
  group.expert_begin = 3;
  group.expert_end = 6;
  const std::int64_t projection = 16 * 6720;
  group.elements = 2 * 3 * 2 * projection;
  CHECK(tensor_elements(tests::divisible_shape(), group) == std::vector<std::int64_t>(12, projection));
}
