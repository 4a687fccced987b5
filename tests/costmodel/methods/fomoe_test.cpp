// Tests of FoMoE with the axes that it shares with other methods. methods_test.cpp has the other tests of
// FoMoE.
#include <doctest/doctest.h>

#include "costmodel/compose/make_plan.hpp"
#include "costmodel/counts/memory.hpp"
#include "costmodel/formula/closed_form.hpp"
#include "costmodel/plan/method.hpp"
#include "tests/plan_bytes.hpp"
#include "tests/scenarios.hpp"

using namespace fomoe;
using namespace fomoe::costmodel;

TEST_CASE("fomoe with LocalAdamW: 3R + P, since moments do not migrate") {
  Scenario scenario = tests::ideal_scenario("fomoe", 8, 2);
  scenario.strategy.placement = PlacementKind::random;
  scenario.strategy.outer_optimizer = OuterOptimizer::local_adamw;
  const ParameterCounts counts = count_parameters(scenario.model);
  const double dense = 2.0 * static_cast<double>(counts.dense());  // bf16
  const double held =
      2.0 * static_cast<double>(counts.expert + counts.router) * 2 / 8;  // N_le experts of every layer
  const SentBytes sent = summarise(scenario).sent;
  const double r = 2.0 * (2 - 1) / 2, p = (1 - 2.0 / 8) * 11 / 12;  // after 11 of 12 rounds
  CHECK(sent.dense == doctest::Approx(3 * 2.0 * 7 / 8 * dense).epsilon(1e-14));
  CHECK(sent.expert_sync + sent.migration == doctest::Approx((3 * r + p) * held).epsilon(1e-14));
  const SentBytes planned = tests::sent_in_round(tests::plan_of(scenario), 8, 0);
  CHECK(planned.dense == doctest::Approx(sent.dense).epsilon(1e-14));
  CHECK(planned.expert_sync == doctest::Approx(sent.expert_sync).epsilon(1e-14));
}

TEST_CASE(
    "fomoe with migrating outer state: momentum doubles the migrated bytes, Adam's moments treble them") {
  struct Case {
    OuterOptimizer optimizer;
    double contents;  // size of a migrating expert with its state, in units of its parameters
  };
  for (const Case& one : {Case{OuterOptimizer::nesterov, 2}, Case{OuterOptimizer::adam, 3},
                          Case{OuterOptimizer::yogi, 3}, Case{OuterOptimizer::local_adamw, 1}}) {
    Scenario scenario = tests::ideal_scenario("fomoe", 8, 2);
    scenario.strategy.placement = PlacementKind::random;
    scenario.strategy.outer_optimizer = one.optimizer;
    const SentBytes resets = summarise(scenario).sent;
    scenario.strategy.outer_state_on_migration = OuterStateOnMigration::transfer;
    const SentBytes sent = summarise(scenario).sent;
    const ParameterCounts counts = count_parameters(scenario.model);
    const double held = 2.0 * static_cast<double>(counts.expert + counts.router) * 2 / 8;  // bf16
    CHECK(sent.migration == doctest::Approx(one.contents * (1 - 2.0 / 8) * held * 11 / 12).epsilon(1e-14));
    CHECK(sent.total() - sent.migration == resets.total() - resets.migration);
    // The formula gives the expectation. A drawn round moves whole experts, the same ones with and without
    // state.
    const auto drawn = [&](OuterStateOnMigration what) {
      scenario.strategy.outer_state_on_migration = what;
      return tests::sent_in_round(tests::plan_of(scenario), 8, 0).migration;
    };
    CHECK(drawn(OuterStateOnMigration::transfer) ==
          doctest::Approx(one.contents * drawn(OuterStateOnMigration::reset_all_owners)).epsilon(1e-14));
  }
}

TEST_CASE(
    "fomoe with top-k: owners exchange sparse differences, but migrating experts are sent whole, in bf16") {
  Scenario scenario = tests::every_axis_scenario("fomoe", 8, 2);
  scenario.strategy.placement = PlacementKind::random;
  scenario.strategy.wire = top_k_format(ElementType::int2, 1.0 / 64, 12);
  const ParameterCounts counts = count_parameters(scenario.model);
  const double held = static_cast<double>(counts.expert + counts.router) * 2 / 8;
  const double per_element = 14.0 / 64 / 8;
  const SentBytes sent = summarise(scenario).sent;
  CHECK(sent.dense == doctest::Approx(7 * static_cast<double>(counts.dense()) * per_element).epsilon(1e-14));
  CHECK(sent.expert_sync == doctest::Approx(1 * held * per_element).epsilon(1e-14));
  CHECK(sent.migration == doctest::Approx((1 - 2.0 / 8) * held * 2 * 9 / 10).epsilon(1e-14));  // 10 rounds
}

TEST_CASE("fomoe with affinity placement: bytes as with any placement, owners by the counts, no migration") {
  Scenario scenario = tests::ideal_scenario("fomoe", 4, 2);
  scenario.strategy.placement = PlacementKind::affinity;
  scenario.strategy.routing_counts = make_routing_counts(2, 8, 4);
  for (int e = 0; e < 8; ++e) scenario.strategy.routing_counts.at(0, e, e % 4) = 100;
  const Plan plan = tests::plan_of(scenario);
  Scenario fixed = scenario;
  fixed.strategy.placement = PlacementKind::fixed;
  CHECK(tests::sent_in_mean_round(plan, 4).total() ==
        tests::sent_in_mean_round(tests::plan_of(fixed), 4).total());
  CHECK(summarise(scenario).sent.total() ==
        doctest::Approx(tests::sent_in_mean_round(plan, 4).total()).epsilon(1e-14));
  REQUIRE(!plan.notes.empty());
  CHECK(plan.notes.back().find("0 % of the routed tokens") != std::string::npos);
  CHECK(plan.notes.back().find("the fixed placement would give 50 %") != std::string::npos);
}
