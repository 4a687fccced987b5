// Tests of transfers that leave layer by layer behind the backward pass, by hand and against the closed form.
#include <doctest/doctest.h>

#include <cmath>

#include "costmodel/formula/closed_form.hpp"
#include "costmodel/methods/all.hpp"
#include "sim/executor/simulate.hpp"
#include "sim/executor/simulated_run.hpp"
#include "tests/scenarios.hpp"
#include "tests/sim/executor/simulated.hpp"

using namespace fomoe;
using costmodel::FragmentPattern;

namespace {

// Two sites, so that each of them sends a payload once. A step of 1 s has a forward pass of 1/3 s and a
// backward pass of 2/3 s.
costmodel::Scenario layerwise(const std::string& method, std::int64_t layers) {
  costmodel::Scenario scenario = tests::every_axis_scenario(method, 2);
  scenario.strategy.wire = costmodel::plain_format(costmodel::ElementType::bf16);
  scenario.strategy.layerwise = true;
  scenario.model.layers = layers;
  return scenario;
}

}  // namespace

TEST_CASE("layerwise diloco by hand: what the last backward pass does not hide shows in each round") {
  for (const bool tied : {true, false}) {
    costmodel::Scenario scenario = layerwise("diloco", 4);
    scenario.model.tied_embeddings = tied;
    const auto counts = costmodel::count_parameters(scenario.model);
    const auto embedding = static_cast<double>(counts.embedding), all = static_cast<double>(counts.total());
    for (const double layer_s : {0.01, 0.1, 0.3, 2.0}) {
      const double bytes_per_s = 2 * (all - embedding) / 4 / layer_s;
      scenario.platform = platforms::uniform(2, bytes_per_s, bytes_per_s, 0);
      const double table_s = 2 * embedding / bytes_per_s / (tied ? 1 : 2), b = 2.0 / 3 / 4;
      // When the backward pass has ended, what is left of the transfers, which began three layers before, or
      // four if an untied unembedding goes first.
      const double left_s = tied ? std::max(4 * layer_s + table_s - 3 * b, layer_s + table_s)
                                 : std::max({2 * table_s + 4 * layer_s - 4 * b, 4 * layer_s + table_s - 3 * b,
                                             layer_s + table_s});
      CAPTURE(layer_s);
      CAPTURE(tied);
      CHECK(tests::simulated_wholly(scenario).wall_clock_s ==
            doctest::Approx(60 + 10 * left_s).epsilon(1e-6));
      CHECK(costmodel::closed_form(scenario).wall_clock_s == doctest::Approx(60 + 10 * left_s).epsilon(1e-6));
    }
  }
}

TEST_CASE("layerwise diloco: only the last micro-batch hides transfers") {
  costmodel::Scenario scenario = layerwise("diloco", 4);
  scenario.workload.global_batch_sequences = 8;  // four sequences per site, in passes of one
  scenario.workload.tokens = 60LL * 8 * scenario.model.sequence_length;
  scenario.gpus.micro_batch_sequences = 1;
  const auto all = static_cast<double>(costmodel::count_parameters(scenario.model).total());
  const double bytes_per_s = 2 * all;  // one second
  scenario.platform = platforms::uniform(2, bytes_per_s, bytes_per_s, 0);
  const double left_s = 1 - 0.75 * 2.0 / 3 / 4;
  CHECK(tests::simulated_wholly(scenario).wall_clock_s == doctest::Approx(60 + 10 * left_s).epsilon(1e-6));
  CHECK(costmodel::closed_form(scenario).wall_clock_s == doctest::Approx(60 + 10 * left_s).epsilon(1e-6));
}

TEST_CASE("layerwise streaming: the formula is the simulation") {
  for (const FragmentPattern pattern :
       {FragmentPattern::strided, FragmentPattern::sequential, FragmentPattern::balanced}) {
    for (const int fragments : {1, 2, 3, 6}) {
      for (const std::int64_t overlap_steps : {0, 1, 2}) {
        // A layer that takes as long as the backward pass of P − 1/2 layers: in strided fragments, the layers
        // above the last fragment's lowest one are gone in time, and this one is not.
        const double lowest_layer_s = (fragments - 0.5) / 12 * 2 / 3;
        for (const double layer_s : {0.5 / 12, lowest_layer_s, 2.0 / 12, 9.0 / 12}) {
          // Which layer is the lowest one of a balanced fragment is not exact in the formula, which says so.
          if (pattern == FragmentPattern::balanced && layer_s == lowest_layer_s) continue;
          costmodel::Scenario scenario = layerwise("streaming_diloco", 12);
          scenario.strategy.local_steps = 12;
          scenario.workload.tokens = 240LL * 2 * 10;
          scenario.strategy.fragments = fragments;
          scenario.strategy.fragment_pattern = pattern;
          scenario.strategy.overlap_steps = overlap_steps;
          const auto counts = costmodel::count_parameters(scenario.model);
          const double bytes_per_s =
              2 * static_cast<double>(counts.total() - counts.embedding) / 12 / layer_s;
          scenario.platform = platforms::uniform(2, bytes_per_s, bytes_per_s, 0.001);
          CAPTURE(std::string(costmodel::to_string(pattern)));
          CAPTURE(fragments);
          CAPTURE(overlap_steps);
          CAPTURE(layer_s);
          // The formula divides layers so that balanced fragments are exactly equal.
          CHECK(tests::simulated_wholly(scenario).wall_clock_s ==
                doctest::Approx(costmodel::closed_form(scenario).wall_clock_s)
                    .epsilon(pattern == FragmentPattern::balanced ? 0.006 : 0.0005));
        }
      }
    }
  }
}

TEST_CASE("layerwise is never slower than whole fragments if there is no latency") {
  for (const char* method : {"diloco", "streaming_diloco"}) {
    costmodel::Scenario scenario = layerwise(method, 12);
    scenario.strategy.local_steps = 6;
    scenario.strategy.overlap_steps = 1;
    scenario.platform = platforms::uniform(2, 3e9, 3e9, 0);
    const double layers_s = tests::simulated_wholly(scenario).wall_clock_s;
    scenario.strategy.layerwise = false;
    CAPTURE(method);
    CHECK(layers_s < tests::simulated_wholly(scenario).wall_clock_s);
  }
}

TEST_CASE("balanced fragments: about equal bytes, with the embedding") {
  for (const std::int64_t vocabulary : {1, 100, 3000}) {
    costmodel::Scenario scenario = tests::every_axis_scenario("streaming_diloco", 2);
    scenario.model.layers = 12;
    scenario.model.vocabulary = vocabulary;
    scenario.strategy.fragments = 4;
    scenario.strategy.local_steps = 12;
    const auto largest_bytes = [&](FragmentPattern pattern) {
      scenario.strategy.fragment_pattern = pattern;
      double most = 0;
      for (const costmodel::Op& op : scenario.strategy.method->plan(scenario).round(0).ops) {
        const auto* transfer = std::get_if<costmodel::Transfer>(&op.what);
        if (transfer != nullptr) most = std::max(most, static_cast<double>(transfer->exchanges[0].bytes()));
      }
      return most;
    };
    const auto counts = costmodel::count_parameters(scenario.model);
    const double bytes = scenario.strategy.wire.bytes_per_element();
    const double layer = bytes * static_cast<double>(counts.total() - counts.embedding) / 12,
                 table = bytes * static_cast<double>(counts.embedding);
    CHECK(largest_bytes(FragmentPattern::balanced) <=
          std::max((12 * layer + table) / 4 + layer, table) * 1.01);
    CHECK(largest_bytes(FragmentPattern::balanced) <= largest_bytes(FragmentPattern::strided));
  }
}
