// Tests of the plan of Streaming DiLoCo, which sends fragments in turn. tests/sim covers the hiding of
// communication.
#include <doctest/doctest.h>

#include <cmath>

#include "costmodel/counts/memory.hpp"
#include "costmodel/formula/closed_form.hpp"
#include "costmodel/plan/method.hpp"
#include "tests/plan_bytes.hpp"
#include "tests/scenarios.hpp"

using namespace fomoe;
using namespace fomoe::costmodel;

TEST_CASE("streaming_diloco: every fragment is sent once per round, and together they are the whole model") {
  Scenario scenario = tests::every_axis_scenario("streaming_diloco", 4);
  scenario.model.layers = 7;
  scenario.strategy.wire = plain_format(ElementType::bf16);
  for (const int fragments : {1, 2, 3, 4, 6}) {
    for (const std::int64_t overlap_steps : {0, 1, 2, 5, 6}) {
      scenario.strategy.fragments = fragments;
      scenario.strategy.overlap_steps = overlap_steps;
      const Plan plan = tests::plan_of(scenario);
      const double whole = 2.0 * 3 / 4 * 2.0 * static_cast<double>(count_parameters(scenario.model).total());
      for (std::int64_t index = 0; index < plan.rounds; ++index) {
        const RoundPlan round = plan.round(index);
        for (int p = 0; p < fragments; ++p)
          CHECK(tests::count_named(round, "average fragment " + std::to_string(p)) == 1);
        CHECK(tests::sent_in_round(plan, 4, index).total() == doctest::Approx(whole).epsilon(1e-13));
      }
    }
  }
}

TEST_CASE("streaming_diloco: fragment p is sent after step (p+1)·K/P and merged τ steps later") {
  Scenario scenario = tests::every_axis_scenario("streaming_diloco", 4);  // K = 6, P = 2, τ = 2
  const RoundPlan round = tests::plan_of(scenario).round(1);
  std::vector<std::string> story;
  for (const Op& op : round.ops) {
    const auto* compute = std::get_if<Compute>(&op.what);
    story.push_back(op.name + (compute != nullptr && compute->work == Work::whole_step
                                   ? std::string(" ").append(std::to_string(compute->repeat))
                                   : ""));
  }
  CHECK(story == std::vector<std::string>{"local steps 2",
                                          "outer step of fragment 1",  // sent in the previous round
                                          "local steps 1", "average fragment 0",        // after step 3
                                          "local steps 2", "outer step of fragment 0",  // after step 5
                                          "local steps 1", "average fragment 1"});
  CHECK(round.ops[1].after_earlier == std::vector<EarlierOp>{{7, 1}});
  CHECK(round.ops[7].detached);
  CHECK(!round.ops[3].detached);
}

TEST_CASE("streaming_diloco and ddp: the defaults of their authors") {
  // Three layers in each fragment, one overlapped step and 4-bit payloads (Streaming DiLoCo, sections 3.2
  // and 3.3); 25 MiB in each bucket (Li et al. 2020, PyTorch Distributed).
  const Method &streaming = *find_method("streaming_diloco"), &data_parallel = *find_method("ddp");
  ModelShape model = tests::divisible_shape();
  Strategy strategy;
  strategy.local_steps = 100;
  model.layers = 24;
  CHECK(streaming.usual_fragments(model, strategy) == 8);
  model.layers = 25;
  CHECK(streaming.usual_fragments(model, strategy) == 9);
  strategy.local_steps = 4;  // fragments take turns within a round
  CHECK(streaming.usual_fragments(model, strategy) == 4);
  CHECK(streaming.usual_overlap_steps == 1);
  CHECK(streaming.usual_wire->type == ElementType::int4);

  model = tests::divisible_shape();
  model.layers = 100;
  const auto layer_bytes = [](const ModelShape& shape) {
    const ParameterCounts counts = count_parameters(shape);
    return 2.0 * static_cast<double>(counts.total() -
                                     counts.embedding);  // bf16; the embedding is in the last bucket
  };
  const double bytes = layer_bytes(model);
  CHECK(bytes / (25 * 1024 * 1024) > 100);  // at least one layer each
  CHECK(data_parallel.usual_fragments(model, strategy) == 100);
  model.d_model = 512;
  const double small = layer_bytes(model);
  CHECK(data_parallel.usual_fragments(model, strategy) == std::ceil(small / (25 * 1024 * 1024)));
  CHECK(data_parallel.usual_fragments(model, strategy) < 100);
}

TEST_CASE("streaming_diloco: without overlap and fragments it equals diloco") {
  Scenario streaming = tests::ideal_scenario("streaming_diloco", 4);
  const RunReport a = closed_form(streaming), b = closed_form(tests::ideal_scenario("diloco", 4));
  CHECK(a.wall_clock_s == doctest::Approx(b.wall_clock_s).epsilon(1e-14));
}

TEST_CASE("streaming: a sequential fragment has consecutive layers, a strided one every P-th") {
  Scenario scenario = tests::ideal_scenario("streaming_diloco", 2);
  scenario.model.layers = 6;
  scenario.strategy.fragments = 2;
  const auto layers_of_first = [&](FragmentPattern pattern) {
    scenario.strategy.fragment_pattern = pattern;
    const Plan plan = tests::plan_of(scenario);
    std::vector<std::int64_t> layers;
    for (const Op& op : plan.round(0).ops) {
      const auto* transfer = std::get_if<Transfer>(&op.what);
      if (transfer == nullptr || op.name != "average fragment 0") continue;
      for (const GroupId id : transfer->exchanges[0].payloads[0].groups)
        layers.push_back(plan.groups[static_cast<std::size_t>(id)].layer_begin);
    }
    return layers;
  };
  CHECK(layers_of_first(FragmentPattern::strided) == std::vector<std::int64_t>{0, 2, 4});
  CHECK(layers_of_first(FragmentPattern::sequential) == std::vector<std::int64_t>{0, 1, 2});
}

TEST_CASE("streaming_diloco: memory of all fragments that are in flight at once") {
  Scenario scenario = tests::every_axis_scenario("streaming_diloco", 4);
  scenario.model.layers = 8;
  scenario.strategy.local_steps = 8;
  scenario.strategy.fragments = 4;
  const ParameterCounts counts = count_parameters(scenario.model);
  const auto tables = static_cast<double>(counts.embedding), all = static_cast<double>(counts.total());
  const auto in_flight = [&](std::int64_t overlap_steps) {
    scenario.strategy.overlap_steps = overlap_steps;
    return memory_per_gpu(scenario).outer_state - 8 * all;  // the anchor and the momentum
  };
  const auto expected = [&](int fragments) { return 4 * (tables + fragments * (all - tables) / 4); };
  // A fragment leaves every second step. One leaves before the site waits for one that left two steps before.
  CHECK(in_flight(0) == doctest::Approx(0));
  CHECK(in_flight(1) == doctest::Approx(expected(1)).epsilon(1e-9));
  CHECK(in_flight(3) == doctest::Approx(expected(2)).epsilon(1e-9));
  CHECK(in_flight(5) == doctest::Approx(expected(3)).epsilon(1e-9));
  CHECK(in_flight(7) == doctest::Approx(expected(4)).epsilon(1e-9));
}
