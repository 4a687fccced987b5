// Tests of FoMoE in fragments: the dense part of some layers among all sites and their experts among their
// owners, in turn and behind later steps. tests/sim covers the hiding of communication.
#include <doctest/doctest.h>

#include <algorithm>
#include <set>

#include "costmodel/compose/check.hpp"
#include "costmodel/formula/closed_form.hpp"
#include "costmodel/inputs/quality_model.hpp"
#include "costmodel/plan/method.hpp"
#include "platforms/support/input_error.hpp"
#include "tests/memory_of.hpp"
#include "tests/plan_bytes.hpp"
#include "tests/scenarios.hpp"

using namespace fomoe;
using namespace fomoe::costmodel;

namespace {

/// K = 6, P = 2, τ = 2, two layers with 8 experts, 10 rounds.
Scenario in_two_fragments(int sites, int overlap) {
  return tests::every_axis_scenario("fomoe", sites, overlap);
}

Scenario reshuffled(Scenario scenario, std::int64_t period) {
  scenario.strategy.placement = PlacementKind::random;
  scenario.strategy.reshuffle_rounds = period;
  return scenario;
}

std::vector<std::string> story_of(const RoundPlan& round) {
  std::vector<std::string> story;
  for (const Op& op : round.ops) {
    const auto* compute = std::get_if<Compute>(&op.what);
    story.push_back(op.name + (compute != nullptr ? " x" + std::to_string(compute->repeat) : "") +
                    (op.detached ? " …" : ""));
  }
  return story;
}

}  // namespace

TEST_CASE("fomoe in fragments sends in each round what it sends without fragments") {
  for (const int overlap : {1, 2, 4, 8}) {
    for (const std::int64_t period : {0, 1, 3}) {
      for (const OuterOptimizer optimizer : {OuterOptimizer::nesterov, OuterOptimizer::local_adamw}) {
        Scenario whole = in_two_fragments(8, overlap);
        whole.model.layers = 7;
        if (period > 0) whole = reshuffled(whole, period);
        whole.strategy.outer_optimizer = optimizer;
        whole.strategy.fragments = 1;
        whole.strategy.overlap_steps = 0;
        const Plan plan_of_whole = tests::plan_of(whole);
        for (const int fragments : {1, 2, 3, 6}) {
          for (const std::int64_t overlap_steps : {0, 1, 2, 6}) {
            for (const bool layerwise : {false, true}) {
              if (overlap_steps > 0 && outer_steps_of(optimizer) == 0) continue;
              Scenario scenario = whole;
              scenario.strategy.fragments = fragments;
              scenario.strategy.overlap_steps = overlap_steps;
              scenario.strategy.layerwise = layerwise;
              CAPTURE(overlap);
              CAPTURE(period);
              CAPTURE(fragments);
              CAPTURE(overlap_steps);
              CAPTURE(layerwise);
              const Plan plan = tests::plan_of(scenario);
              REQUIRE(plan.rounds == plan_of_whole.rounds);
              for (std::int64_t index = 0; index < plan.rounds; ++index) {
                const SentBytes sent = tests::sent_in_round(plan, 8, index);
                const SentBytes expected = tests::sent_in_round(plan_of_whole, 8, index);
                CHECK(sent.dense == doctest::Approx(expected.dense).epsilon(1e-13));
                CHECK(sent.expert_sync == doctest::Approx(expected.expert_sync).epsilon(1e-13));
                CHECK(sent.migration == doctest::Approx(expected.migration).epsilon(1e-13));
              }
              const SentBytes formula = summarise(scenario).sent, of_whole = summarise(whole).sent;
              CHECK(formula.dense == of_whole.dense);
              CHECK(formula.expert_sync == of_whole.expert_sync);
              CHECK(formula.migration == of_whole.migration);
            }
          }
        }
      }
    }
  }
}

TEST_CASE("fomoe in fragments: each expert is averaged once a round, among the owners of that round") {
  for (const bool layerwise : {false, true}) {
    for (const int overlap : {1, 2}) {
      Scenario scenario = reshuffled(in_two_fragments(4, overlap), 2);
      scenario.model.layers = 5;
      scenario.strategy.layerwise = layerwise;
      const Plan plan = tests::plan_of(scenario);
      for (std::int64_t index = 0; index < plan.rounds; ++index) {
        const Placement placement = plan.placement(index);
        std::set<GroupId> seen;
        for (const Op& op : plan.round(index).ops) {
          const auto* transfer = std::get_if<Transfer>(&op.what);
          if (transfer == nullptr || op.name == "migrate experts") continue;
          for (const Exchange& exchange : transfer->exchanges) {
            for (const Payload& payload : exchange.payloads) {
              CHECK(std::all_of(payload.groups.begin(), payload.groups.end(),
                                [&](GroupId id) { return seen.insert(id).second; }));
              if (payload.traffic == TrafficClass::dense) {
                CHECK(exchange.nodes.size() == 4);
                continue;
              }
              const TensorGroup& group = plan.groups[static_cast<std::size_t>(payload.groups.at(0))];
              const auto owners =
                  placement.owners(static_cast<int>(group.layer_begin), static_cast<int>(group.expert_begin));
              CHECK(std::set<int>(exchange.nodes.begin(), exchange.nodes.end()) ==
                    std::set<int>(owners.begin(), owners.end()));
            }
          }
        }
        CHECK(seen.size() == plan.groups.size());
      }
    }
  }
}

TEST_CASE("fomoe in fragments: dense part and experts leave together, and the outer step waits for both") {
  const RoundPlan round = tests::plan_of(in_two_fragments(4, 2)).round(1);
  CHECK(story_of(round) ==
        std::vector<std::string>{
            "local steps x2", "outer step of fragment 1 x1",  // of the round before
            "local steps x1", "average the dense part of fragment 0", "average the experts of fragment 0",
            "local steps x2", "outer step of fragment 0 x1", "local steps x1",
            "average the dense part of fragment 1 …", "average the experts of fragment 1 …"});
  CHECK(round.ops[3].after == round.ops[4].after);
  CHECK(round.ops[1].after_earlier == std::vector<EarlierOp>{{8, 1}, {9, 1}});
  CHECK(round.ops[6].after == std::vector<OpId>{5, 3, 4});
}

TEST_CASE("fomoe in fragments: experts move when all fragments have just been averaged") {
  const Plan plan = tests::plan_of(reshuffled(in_two_fragments(4, 2), 3));
  // Rounds 2, 5 and 8 end with a migration.
  CHECK(story_of(plan.round(2)) ==
        std::vector<std::string>{"local steps x2", "outer step of fragment 1 x1",  // sent in the round before
                                 "local steps x4", "average the dense part of fragment 0",
                                 "average the experts of fragment 0", "average the dense part of fragment 1",
                                 "average the experts of fragment 1", "outer step of fragment 0 x1",
                                 "outer step of fragment 1 x1", "migrate experts"});
  CHECK(plan.round(2).ops.back().after == std::vector<OpId>{7, 8});
  CHECK(story_of(plan.round(3))[1] == "outer step of fragment 1 x0");  // nothing was in flight
  CHECK(story_of(plan.round(4))[1] == "outer step of fragment 1 x1");
  for (std::int64_t index = 0; index < plan.rounds; ++index) {
    const bool moves = index == 2 || index == 5 || index == 8;
    const RoundPlan round = plan.round(index);
    CHECK(tests::count_named(round, "migrate experts") == (moves ? 1 : 0));
    CHECK(std::any_of(round.ops.begin(), round.ops.end(), [](const Op& op) { return op.detached; }) ==
          !moves);
    // What a round waits for from the round before is a transfer of the same fragment there.
    for (const Op& op : round.ops) {
      for (const EarlierOp& before : op.after_earlier) {
        REQUIRE(index > 0);
        const Op& sent = plan.round(index - 1).ops.at(static_cast<std::size_t>(before.op));
        CHECK(sent.detached);
        CHECK(sent.name.substr(sent.name.size() - 10) == op.name.substr(op.name.size() - 10));
      }
    }
  }
  // 10 rounds: all but the last one take an outer step for each of both fragments.
  double outer_steps = 0;
  for (std::int64_t index = 0; index < plan.rounds; ++index) {
    for (const Op& op : plan.round(index).ops) {
      const auto* compute = std::get_if<Compute>(&op.what);
      if (compute != nullptr && compute->work == Work::outer_step)
        outer_steps += static_cast<double>(compute->repeat) * compute->share;
    }
  }
  CHECK(outer_steps == doctest::Approx(9.5));
  CHECK(10 * summarise(reshuffled(in_two_fragments(4, 2), 3)).outer_steps_per_round == doctest::Approx(9.5));
}

TEST_CASE("fomoe in fragments with all experts everywhere is streaming_diloco") {
  for (const bool layerwise : {false, true}) {
    Scenario fomoe = in_two_fragments(4, 4), streaming = tests::every_axis_scenario("streaming_diloco", 4);
    fomoe.strategy.layerwise = streaming.strategy.layerwise = layerwise;
    fomoe.strategy.wire = streaming.strategy.wire;
    const Plan a = tests::plan_of(fomoe), b = tests::plan_of(streaming);
    for (std::int64_t index = 0; index < a.rounds; ++index) {
      const RoundPlan x = a.round(index), y = b.round(index);
      REQUIRE(story_of(x) == story_of(y));
      for (std::size_t op = 0; op < x.ops.size(); ++op) {
        CHECK(x.ops[op].after == y.ops[op].after);
        CHECK(x.ops[op].after_earlier == y.ops[op].after_earlier);
        const auto *p = std::get_if<Transfer>(&x.ops[op].what), *q = std::get_if<Transfer>(&y.ops[op].what);
        REQUIRE((p == nullptr) == (q == nullptr));
        if (p == nullptr) continue;
        REQUIRE(p->exchanges.size() == 1);
        CHECK(p->exchanges[0].nodes == q->exchanges.at(0).nodes);
        REQUIRE(p->exchanges[0].payloads.size() == q->exchanges[0].payloads.size());
        for (std::size_t i = 0; i < p->exchanges[0].payloads.size(); ++i)
          CHECK(p->exchanges[0].payloads[i].groups == q->exchanges[0].payloads[i].groups);
      }
    }
    CHECK(closed_form(fomoe).wall_clock_s == closed_form(streaming).wall_clock_s);
  }
}

TEST_CASE("fomoe in fragments: averaged parameters would replace the steps that are made meanwhile") {
  for (const OuterOptimizer optimizer : {OuterOptimizer::average, OuterOptimizer::local_adamw}) {
    Scenario scenario = in_two_fragments(4, 2);
    scenario.strategy.outer_optimizer = optimizer;
    CHECK_THROWS_WITH_AS(check(scenario), doctest::Contains("overlap_steps"), InputError);
    scenario.strategy.overlap_steps = 0;
    check(scenario);
    CHECK(summarise(scenario).outer_steps_per_round == 0);
  }
  Scenario stored = tests::through_store(in_two_fragments(4, 2), true);
  check(stored);
  stored.strategy.fragments = 2;
  CHECK_THROWS_WITH_AS(check(stored), doctest::Contains("fragments or overlap_steps"), InputError);
}

TEST_CASE(
    "balanced fragments have about equal bytes on the wire, of which experts with few owners have few") {
  for (const int overlap : {1, 2, 8}) {
    Scenario scenario = in_two_fragments(8, overlap);
    scenario.model.layers = 12;
    scenario.model.vocabulary = 1000;
    scenario.strategy.local_steps = 12;
    scenario.strategy.fragments = 4;
    scenario.strategy.fragment_pattern = FragmentPattern::balanced;
    const Plan plan = tests::plan_of(scenario);
    std::vector<double> bytes(4, 0);
    for (const Op& op : plan.round(0).ops) {
      const auto* transfer = std::get_if<Transfer>(&op.what);
      if (transfer == nullptr) continue;
      for (const Exchange& exchange : transfer->exchanges)
        bytes.at(static_cast<std::size_t>(op.name.back() - '0')) += tests::crossing_bytes(
            plan, transfer->pattern, exchange.nodes, static_cast<double>(exchange.bytes()));
    }
    const double layer = *std::min_element(bytes.begin(), bytes.end()) / 2;  // or less: no fragment has one
    CAPTURE(overlap);
    CHECK(*std::max_element(bytes.begin(), bytes.end()) - *std::min_element(bytes.begin(), bytes.end()) <
          layer * 1.01);
  }
}

TEST_CASE("a fragment in flight takes 4 bytes for each of its parameters beside the outer state") {
  for (const char* method : {"fomoe", "streaming_diloco"}) {
    Scenario scenario = tests::every_axis_scenario(method, 4, 2);
    const bool partial = scenario.strategy.method->partial_experts;
    const ParameterCounts counts = count_parameters(scenario.model);
    const auto outer_state = [&] { return memory_per_site(scenario).outer_state; };
    scenario.strategy.overlap_steps = 0;
    const double held = static_cast<double>(counts.dense()) +
                        static_cast<double>(counts.expert + counts.router) * (partial ? 2.0 / 4 : 1.0);
    const auto tables = static_cast<double>(counts.embedding);
    CHECK(outer_state() == doctest::Approx(8 * held).epsilon(1e-14));
    scenario.strategy.overlap_steps = 1;
    CHECK(outer_state() == doctest::Approx(8 * held + 4 * (tables + (held - tables) / 2)).epsilon(1e-14));
    scenario.strategy.fragments = 1;
    CHECK(outer_state() == doctest::Approx(8 * held + 4 * held).epsilon(1e-14));
  }
}

TEST_CASE("the quality of fomoe in fragments is unknown where no run has them") {
  Scenario scenario = in_two_fragments(4, 2);
  QualityTable table;
  table.source = "a table";
  QualityRow row;
  row.strategy = "diloco";
  row.local_steps = 6;
  row.placement = "fixed";
  row.sites = 4;
  row.expert_overlap = 2;
  row.perplexity = 10;
  table.rows = {row};
  const auto quality = [&] {
    scenario.quality = table;
    return *closed_form(scenario).quality;
  };
  CHECK(quality().reason == "method fomoe with fragments or overlap_steps; the table has diloco");
  scenario.strategy.fragments = 1;
  CHECK(!quality().known);
  table.rows[0].strategy = "streaming_diloco";
  CHECK(quality().known);
  table.rows[0].strategy = "diloco";
  scenario.strategy.overlap_steps = 0;
  CHECK(quality().known);
  scenario.strategy.layerwise = true;  // averages the same after the same step
  CHECK(quality().known);
}
