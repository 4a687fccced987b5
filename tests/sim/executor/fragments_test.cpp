// Tests of fragments, by hand and against the closed form: of those that leave layer by layer behind the
// backward pass, and of those of fomoe, whose experts are averaged among their owners.
#include <doctest/doctest.h>

#include <cmath>

#include "costmodel/compose/check.hpp"
#include "costmodel/formula/approximations.hpp"
#include "costmodel/formula/closed_form.hpp"
#include "costmodel/formula/resolved.hpp"
#include "costmodel/methods/all.hpp"
#include "costmodel/model/flops.hpp"
#include "sim/executor/simulate.hpp"
#include "sim/executor/simulated_run.hpp"
#include "tests/draws.hpp"
#include "tests/plan_bytes.hpp"
#include "tests/scenarios.hpp"
#include "tests/sim/executor/simulated.hpp"

using namespace fomoe;
using costmodel::FragmentPattern;
using costmodel::PlacementKind;
using costmodel::Scenario;

namespace {

// All layers ÷ a pass, which has the unembedding as well. Backward, it comes first.
double layers_of_pass(const costmodel::Scenario& scenario) {
  return 1 - costmodel::unembedding_flops(scenario.model) / costmodel::flops_per_token(scenario).total();
}

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
      const double table_s = 2 * embedding / bytes_per_s / (tied ? 1 : 2),
                   b = layers_of_pass(scenario) * 2 / 3 / 4;
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
  const double left_s = 1 - 0.75 * layers_of_pass(scenario) * 2 / 3 / 4;
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

TEST_CASE(
    "fomoe in fragments by hand: each fragment hides behind its steps, but in rounds that move experts") {
  // 2 sites with one owner for each expert: a site sends 2(M−1)/M = 1 times the dense part of a fragment. K =
  // 6 steps of 1 s, two fragments, 10 rounds.
  for (const std::int64_t period : {0, 2}) {
    Scenario scenario = tests::every_axis_scenario("fomoe", 2, 1);
    scenario.strategy.placement = period > 0 ? PlacementKind::random : PlacementKind::fixed;
    if (period > 0) scenario.strategy.reshuffle_rounds = period;
    const auto counts = costmodel::count_parameters(scenario.model);
    const double first = 2.0 * static_cast<double>(counts.dense() - counts.embedding) / 2;  // bf16, one layer
    const double last = first + 2.0 * static_cast<double>(counts.embedding);
    const double bandwidth = first / 1.5, first_s = 1.5, last_s = last / bandwidth;
    REQUIRE(last_s < 3);  // no two fragments travel at once
    scenario.platform = platforms::uniform(2, bandwidth, bandwidth, 0);
    for (const std::int64_t overlap_steps : {0, 1, 2}) {
      scenario.strategy.overlap_steps = overlap_steps;
      const auto late_s = [&](double transfer_s) {
        return std::max(transfer_s - static_cast<double>(overlap_steps), 0.0);
      };
      // Experts move after rounds 2, 4, 6 and 8. Nothing hides the fragments of these rounds, and the last
      // one of round 10.
      const double moving = period > 0 ? 4 : 0, others = 10 - moving;
      double expected_s = 60 + moving * (first_s + last_s) + others * late_s(first_s) +
                          (others - 1) * late_s(last_s) + last_s;
      const costmodel::Plan plan = tests::plan_of(scenario);
      for (std::int64_t round = 0; round < plan.rounds; ++round)
        expected_s += tests::sent_in_round(plan, 2, round).migration / bandwidth;  // equally many both ways
      CAPTURE(period);
      CAPTURE(overlap_steps);
      CHECK(tests::simulated_wholly(scenario).wall_clock_s == doctest::Approx(expected_s).epsilon(1e-9));
      if (period == 0)
        CHECK(costmodel::closed_form(scenario).wall_clock_s == doctest::Approx(expected_s).epsilon(1e-9));
    }
  }
}

TEST_CASE("fomoe in fragments on drawn scenarios: the closed form is the simulation to 1e-9") {
  tests::Draws draws(56);
  int hidden = 0;
  for (int i = 0; i < 150; ++i) {
    const int sites = 1 << (1 + draws.below(3));
    const int overlap = 1 << draws.below(static_cast<int>(std::log2(sites)) + 1);
    Scenario scenario = tests::every_axis_scenario("fomoe", sites, overlap);
    costmodel::Strategy& strategy = scenario.strategy;
    strategy.fragments = 1 + draws.below(4);
    scenario.model.layers = strategy.fragments * (1 + draws.below(3));
    const int between = 1 + draws.below(4);
    strategy.local_steps = strategy.fragments * between;
    strategy.overlap_steps = draws.below(between);
    strategy.collective = draws.chance(0.5) ? costmodel::Collective::ring : costmodel::Collective::direct;
    strategy.skip_token = draws.chance(0.3);
    strategy.outer_optimizer = static_cast<costmodel::OuterOptimizer>(draws.below(3));
    if (draws.chance(0.2)) {
      strategy.outer_optimizer = costmodel::OuterOptimizer::local_adamw;
      strategy.overlap_steps = 0;
    }
    scenario.workload.tokens =
        strategy.local_steps * (1 + draws.below(12)) * sites * scenario.model.sequence_length;
    const auto all = static_cast<double>(costmodel::count_parameters(scenario.model).total());
    scenario.gpus.memory_bytes_per_s = draws.chance(0.5) ? 10 * all / draws.between(0.01, 1) : 0;
    const double bytes_per_s = 2 * all / draws.between(0.1, 9);
    scenario.platform = platforms::uniform(sites, bytes_per_s, bytes_per_s, 0);
    costmodel::check(scenario);
    const costmodel::Resolved resolved = costmodel::resolve(scenario);
    CAPTURE(i);
    REQUIRE(costmodel::approximations(scenario, resolved).empty());
    const costmodel::RunReport formula = costmodel::closed_form(scenario);
    const costmodel::RunReport simulated = tests::simulated_wholly(scenario);
    CHECK(simulated.wall_clock_s == doctest::Approx(formula.wall_clock_s).epsilon(1e-9));
    CHECK(simulated.bytes_per_token == doctest::Approx(formula.bytes_per_token).epsilon(1e-12));
    CHECK(simulated.round.exposed_communication_s ==
          doctest::Approx(formula.round.exposed_communication_s).epsilon(1e-9));
    hidden += formula.round.exposed_communication_s < 0.9 * formula.round.communication_s ? 1 : 0;
  }
  CHECK(hidden > 20);  // else nothing overlapped
}

TEST_CASE("fomoe in fragments with a random placement: the closed form takes the expected migrations") {
  tests::Draws draws(57);
  for (int i = 0; i < 12; ++i) {
    Scenario scenario = tests::every_axis_scenario("fomoe", 4, 2);
    scenario.model.layers = 12;
    scenario.strategy.local_steps = 12;
    scenario.strategy.fragments = 1 + draws.below(2);
    scenario.strategy.overlap_steps = 1 + draws.below(4);
    scenario.strategy.layerwise = draws.chance(0.3);
    scenario.strategy.placement = PlacementKind::random;
    scenario.strategy.reshuffle_rounds = 1 + draws.below(4);
    scenario.workload.tokens = 240LL * 4 * 10;
    const auto all = static_cast<double>(costmodel::count_parameters(scenario.model).total());
    const double bytes_per_s = 2 * all / draws.between(1, 9);
    scenario.platform = platforms::uniform(4, bytes_per_s, bytes_per_s, 0);
    CAPTURE(i);
    CAPTURE(scenario.strategy.layerwise);
    CAPTURE(scenario.strategy.reshuffle_rounds);
    CAPTURE(scenario.strategy.overlap_steps);
    // 1 %: what ports that wait for each other lose, as without fragments.
    CHECK(tests::simulated_wholly(scenario).wall_clock_s ==
          doctest::Approx(costmodel::closed_form(scenario).wall_clock_s).epsilon(0.01));
  }
}
