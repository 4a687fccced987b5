// Tests of the methods' plans: their bytes against the paper's equations, and the summary by formula against
// the plan.
#include <doctest/doctest.h>

#include <cmath>
#include <map>
#include <set>

#include "costmodel/compose/make_plan.hpp"
#include "costmodel/formula/closed_form.hpp"
#include "costmodel/methods/all.hpp"
#include "costmodel/model/summary_inputs.hpp"
#include "costmodel/plan/building_blocks.hpp"
#include "costmodel/plan/method.hpp"
#include "tests/plan_bytes.hpp"
#include "tests/scenarios.hpp"

using namespace fomoe;
using namespace fomoe::costmodel;
using tests::sent_in_round;

TEST_CASE("bytes of a round: B_dense = 2(M−1)/M·S_dense, B_sparse = R(O_e)·N_le·s, ×3 for LocalAdamW") {
  const int sites = 8;
  const ParameterCounts counts = count_parameters(tests::divisible_shape());
  const double dense = 2.0 * static_cast<double>(counts.embedding + counts.attention + counts.norm);  // bf16
  const double experts = 2.0 * static_cast<double>(counts.expert + counts.router);
  const double ring = 2.0 * (sites - 1) / sites;

  for (const char* method : {"ddp", "diloco", "local_adamw"}) {
    const Scenario scenario = tests::ideal_scenario(method, sites);
    const double contents = std::string(method) == "local_adamw" ? 3 : 1;
    const SentBytes sent = sent_in_round(tests::plan_of(scenario), sites, 0);
    CHECK(sent.dense == doctest::Approx(contents * ring * dense).epsilon(1e-14));
    CHECK(sent.expert_sync == doctest::Approx(contents * ring * experts).epsilon(1e-14));
    CHECK(sent.migration == 0);
  }
  for (const int overlap : {1, 2, 4}) {
    const Scenario scenario = tests::ideal_scenario("fomoe", sites, overlap);
    const SentBytes sent = sent_in_round(tests::plan_of(scenario), scenario.sites(), 0);
    CHECK(sent.dense == doctest::Approx(ring * dense).epsilon(1e-14));
    CHECK(sent.expert_sync ==
          doctest::Approx(2.0 * (overlap - 1) / overlap * experts * overlap / sites).epsilon(1e-14));
  }
}

TEST_CASE("with skip-token the whole router is sent with the dense part") {
  Scenario scenario = tests::ideal_scenario("fomoe", 4, 2);
  const SentBytes without = sent_in_round(tests::plan_of(scenario), scenario.sites(), 0);
  scenario.strategy.skip_token = true;
  const SentBytes with = sent_in_round(tests::plan_of(scenario), scenario.sites(), 0);
  const double router = 2.0 * static_cast<double>(count_parameters(scenario.model).router);
  CHECK(with.dense - without.dense == doctest::Approx(2.0 * 3 / 4 * router).epsilon(1e-12));
  CHECK(without.expert_sync - with.expert_sync ==
        doctest::Approx(1.0 * router / 2).epsilon(1e-12));  // R(2) = 1, and a site holds half
}

TEST_CASE("for every method the summary by formula equals the summary of the plan") {
  // 60 steps are ten whole rounds. 61 and 64 steps are eleven rounds, of which the last has one step or four.
  for (const std::int64_t steps : {60, 61, 64}) {
    for (const Method& method : methods()) {
      for (const int sites : {2, 4, 8}) {
        for (int overlap = 1; overlap <= sites; overlap *= 2) {
          for (const Collective collective : {Collective::ring, Collective::direct}) {
            Scenario scenario = tests::every_axis_scenario(std::string(method.name), sites, overlap);
            scenario.strategy.collective = collective;
            if (at_own_pace(scenario.strategy))
              scenario.strategy.staleness = 1;             // else the plan has whole cycles
            if (at_own_pace(scenario.strategy)) continue;  // always: decoupled_diloco_test.cpp
            scenario.workload.tokens = steps * sites * scenario.model.sequence_length;
            const Plan plan = method.plan(scenario);
            const PlanSummary summary = summarise(scenario);
            const SentBytes sent = tests::sent_in_mean_round(plan, sites);
            CAPTURE(method.name);
            CAPTURE(steps);
            CHECK(summary.rounds == static_cast<double>(plan.rounds));
            CHECK(summary.steps == static_cast<double>(plan.steps));
            CHECK(summary.sent.dense == doctest::Approx(sent.dense).epsilon(1e-13));
            CHECK(summary.sent.expert_sync == doctest::Approx(sent.expert_sync).epsilon(1e-13));
            CHECK(summary.sent.migration == doctest::Approx(sent.migration).epsilon(1e-13));
            CHECK(summary.sent.activations == doctest::Approx(sent.activations).epsilon(1e-13));
          }
        }
      }
    }
  }
}

TEST_CASE("every method: the round classes cover each round once, with its number of steps") {
  for (const Method& method : methods()) {
    Scenario scenario = tests::every_axis_scenario(std::string(method.name), 4, 2);
    if (at_own_pace(scenario.strategy))
      scenario.strategy.staleness = 1;         // else sites have unequally many steps
    scenario.workload.tokens = 64LL * 4 * 10;  // 64 steps: ten rounds of 6 and one of 4
    const Plan plan = method.plan(scenario);
    std::vector<int> seen(static_cast<std::size_t>(plan.rounds), 0);
    for (const RoundClass& rounds : plan.classes) {
      for (std::int64_t i = 0; i < rounds.count; ++i) ++seen.at(static_cast<std::size_t>(rounds.round_at(i)));
    }
    CAPTURE(method.name);
    for (const int times : seen) CHECK(times == 1);
    double steps = 0;  // steps of node 0 in the whole run
    for (std::int64_t index = 0; index < plan.rounds; ++index) {
      for (const Op& op : plan.round(index).ops) {
        const auto* compute = std::get_if<Compute>(&op.what);
        if (compute == nullptr) continue;
        // `share` of a whole step is the share of its micro-batches that this operation computes; `share` of
        // an optimiser step is the share of the parameters that it updates.
        if (compute->work == Work::whole_step) steps += static_cast<double>(compute->repeat) * compute->share;
        if (compute->work == Work::optimizer) steps += static_cast<double>(compute->repeat);
      }
    }
    if (!at_own_pace(scenario.strategy)) CHECK(steps == doctest::Approx(64).epsilon(1e-12));
  }
}

TEST_CASE(
    "random placement: migration averages P·N_le·s_expert with P = (1 − O_e/M)/T, but for the last round") {
  for (const int period : {1, 3}) {
    Scenario scenario = tests::ideal_scenario("fomoe", 8, 2);
    scenario.strategy.placement = PlacementKind::random;
    scenario.strategy.reshuffle_rounds = period;
    scenario.strategy.local_steps = 1;  // 60 rounds
    scenario.model.layers = 40;
    const Plan plan = find_method("fomoe")->plan(scenario);
    double migrated = 0;
    for (std::int64_t round = 0; round < plan.rounds; ++round) {
      const SentBytes sent = sent_in_round(plan, 8, round);
      CHECK((sent.migration > 0) == ((round + 1) % period == 0 && round + 1 < 60));
      migrated += sent.migration / static_cast<double>(plan.rounds);
    }
    const double expected = summarise(scenario).sent.migration;
    const double held = 2.0 * 40 * 2 * (2 * 6720 * 16 + 6720);  // bf16, N_le = 2 experts with router columns
    CHECK(expected == doctest::Approx((1 - 2.0 / 8) * (period == 1 ? 59 : 19) / 60 * held));
    CHECK(migrated ==
          doctest::Approx(expected).epsilon(0.02));  // 6,400 or 1,600 experts drawn per round: σ < 0.5 %
  }
}

TEST_CASE("after a migration every site holds the experts that the next round's placement gives it") {
  Scenario scenario = tests::ideal_scenario("fomoe", 8, 2);
  scenario.strategy.placement = PlacementKind::random;
  const Plan plan = find_method("fomoe")->plan(scenario);
  using Holders = std::map<GroupId, std::set<NodeId>>;
  const auto holders_in = [&](std::int64_t index) {
    Holders holders;
    for (const Op& op : plan.round(index).ops) {
      if (op.name != "average experts") continue;
      for (const Exchange& exchange : std::get<Transfer>(op.what).exchanges) {
        holders[exchange.payloads[0].groups[0]].insert(exchange.nodes.begin(), exchange.nodes.end());
      }
    }
    return holders;
  };
  const Holders before = holders_in(0), after = holders_in(1);
  const RoundPlan round = plan.round(0);
  Holders fetched;
  for (const Exchange& exchange : std::get<Transfer>(round.ops.back().what).exchanges) {
    const GroupId group = exchange.payloads[0].groups[0];
    CHECK(before.at(group).count(exchange.nodes[0]) == 1);  // only an owner can send
    fetched[group].insert(exchange.nodes[1]);
  }
  for (const auto& [group, owners] : after) {
    for (const NodeId owner : owners) CHECK(before.at(group).count(owner) + fetched[group].count(owner) == 1);
  }
}

TEST_CASE(
    "rounds: ⌈tokens ÷ global batch⌉ steps, a short last round, and classes that cover each round once") {
  Scenario scenario = tests::ideal_scenario("fomoe", 4, 2);
  scenario.workload.tokens = 60 * 4 * 10 + 1;  // one token more than 60 steps: 61 steps
  scenario.strategy.local_steps = 7;
  for (const PlacementKind placement : {PlacementKind::fixed, PlacementKind::random}) {
    for (const int period : {1, 2, 5}) {
      scenario.strategy.placement = placement;
      scenario.strategy.reshuffle_rounds = period;
      const Plan plan = find_method("fomoe")->plan(scenario);
      CHECK(plan.steps == 61);
      CHECK(plan.rounds == 9);  // 8 rounds of 7 steps and one of 5
      std::vector<int> seen(9, 0);
      std::int64_t steps = 0;
      for (const RoundClass& rounds : plan.classes) {
        for (std::int64_t i = 0; i < rounds.count; ++i) {
          const std::int64_t index = rounds.round_at(i);
          ++seen[static_cast<std::size_t>(index)];
          steps += rounds.steps;
          CHECK(std::get<Compute>(plan.round(index).ops[0].what).repeat == rounds.steps);
        }
      }
      CHECK(steps == 61);
      for (const int times : seen) CHECK(times == 1);
    }
  }
}

TEST_CASE("fomoe with O_e = M sends as many bytes as diloco") {
  const Plan diloco = find_method("diloco")->plan(tests::ideal_scenario("diloco", 4));
  const Plan fomoe = find_method("fomoe")->plan(tests::ideal_scenario("fomoe", 4, 4));
  CHECK(sent_in_round(fomoe, 4, 0).total() == sent_in_round(diloco, 4, 0).total());
  CHECK(fomoe.round(0).ops.size() == diloco.round(0).ops.size());
}

TEST_CASE("chunks differ by at most one element and add up to the whole") {
  for (const std::int64_t elements : {0, 1, 7, 8, 1000003}) {
    std::int64_t sum = 0;
    for (int c = 0; c < 8; ++c) {
      const std::int64_t chunk = chunk_elements(elements, 8, c);
      CHECK(chunk - elements / 8 >= 0);
      CHECK(chunk - elements / 8 <= 1);
      sum += chunk;
    }
    CHECK(sum == elements);
  }
}

TEST_CASE("closed form by hand: diloco, M = 2, 1 GB/s, 10 ms, ring") {
  Scenario scenario = tests::ideal_scenario("diloco", 2);
  scenario.platform = platforms::uniform(2, 1e9, 1e9, 0.010);
  const RunReport report = closed_form(scenario);
  const double payload = 2.0 * static_cast<double>(count_parameters(scenario.model).total());  // bf16
  const double sync = 2 * (0.010 + payload / 2 / 1e9);  // 2(M−1) steps of S/M
  CHECK(report.round.count == 12);
  CHECK(report.wall_clock_s == doctest::Approx(12 * (5 * 1.0 + sync)).epsilon(1e-12));
  CHECK(report.compute_utilization == doctest::Approx(5 / (5 + sync)).epsilon(1e-12));
  CHECK(report.bytes_per_token == doctest::Approx(2 * payload / (5 * 2 * 10)).epsilon(1e-12));
  CHECK(report.tokens == 60 * 2 * 10);
}

TEST_CASE("every method says what it sends, where it comes from and what is assumed") {
  for (const Method& method : methods()) {
    CAPTURE(method.name);
    CHECK_FALSE(method.summary.empty());
    CHECK_FALSE(method.source.empty());
    CHECK_FALSE(method.assumptions.empty());
  }
}
