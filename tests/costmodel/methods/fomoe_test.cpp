// Tests of FoMoE with the axes that it shares with other methods. methods_test.cpp has the other tests of
// FoMoE.
#include <doctest/doctest.h>

#include "costmodel/compose/make_plan.hpp"
#include "costmodel/counts/memory.hpp"
#include "costmodel/formula/closed_form.hpp"
#include "costmodel/inputs/routing_counts.hpp"
#include "costmodel/model/flops.hpp"
#include "costmodel/plan/method.hpp"
#include "costmodel/plan/site_shares.hpp"
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

TEST_CASE("skip-token with routing counts: each site computes for the tokens that it keeps") {
  Scenario scenario = tests::ideal_scenario("fomoe", 4, 2);
  scenario.strategy.skip_token = true;
  scenario.compute = AssumedDevice{1e15, 0.4};
  const FlopsPerToken uniform = flops_per_token(scenario);
  const double full = full_replica_flops(scenario.model).expert;
  CHECK(uniform.expert == doctest::Approx(full / 2).epsilon(1e-12));  // N_le/N_e = O_e/M
  // Site 0 chooses the experts of its own block and the other one 3 : 1, and the others all experts equally.
  const auto layers = static_cast<int>(moe_layers(scenario.model)),
             experts = static_cast<int>(scenario.model.experts);
  scenario.strategy.routing_counts = make_routing_counts(layers, experts, 4);
  for (int layer = 0; layer < layers; ++layer) {
    for (int expert = 0; expert < experts; ++expert) {
      for (int site = 0; site < 4; ++site)
        scenario.strategy.routing_counts.at(layer, expert, site) =
            site == 0 && expert < experts / 2 ? 300 : 100;
    }
  }
  CHECK(flops_per_token(scenario).expert == doctest::Approx(full * (0.75 + 3 * 0.5) / 4).epsilon(1e-12));
  CHECK(flops_per_token(scenario).router == uniform.router);  // the router scores all experts
  const RunReport report = closed_form(scenario);
  const double dense = uniform.dense + uniform.attention + uniform.router;
  CHECK(report.sites[0].compute_s / report.sites[1].compute_s ==
        doctest::Approx((dense + 0.75 * full) / (dense + 0.5 * full)).epsilon(1e-9));
  SUBCASE("a placement that is drawn again and again meets each expert equally often") {
    scenario.strategy.placement = PlacementKind::random;
    CHECK(flops_per_token(scenario).expert == doctest::Approx(full / 2).epsilon(1e-12));
  }
  SUBCASE("without skip-token, the counts change nothing") {
    scenario.strategy.skip_token = false;
    const double before = flops_per_token(scenario).total();
    scenario.strategy.routing_counts = {};
    CHECK(flops_per_token(scenario).total() == before);
  }
}

TEST_CASE("fomoe with experts that the sites cannot divide evenly: the plan sends what the formula says") {
  struct Size {
    int experts, sites;
  };
  for (const auto [experts, sites] : {Size{8, 3}, {64, 3}, {16, 5}, {16, 6}, {16, 7}}) {
    for (int overlap = 1; overlap <= sites; ++overlap) {
      CAPTURE(experts);
      CAPTURE(sites);
      CAPTURE(overlap);
      Scenario scenario = tests::ideal_scenario("fomoe", sites, overlap);
      scenario.model.experts = experts;
      const SentBytes sent = summarise(scenario).sent,
                      planned = tests::sent_in_round(tests::plan_of(scenario), sites, 0);
      CHECK(planned.dense == doctest::Approx(sent.dense).epsilon(1e-14));
      CHECK(planned.expert_sync == doctest::Approx(sent.expert_sync).epsilon(1e-14));
      CHECK(planned.migration == 0);
    }
  }
}

TEST_CASE("fomoe: 8 experts at three sites by hand, two owners each") {
  // Two layers of 16 copies: sites hold 6, 5, 5 and 5, 6, 5 experts, so 11, 11 and 10 of 16.
  Scenario scenario = tests::ideal_scenario("fomoe", 3, 2);
  scenario.strategy.placement = PlacementKind::random;
  scenario.workload.tokens *= 100;  // 1,200 rounds, and nothing moves after the last one
  const ParameterCounts counts = count_parameters(scenario.model);
  const std::int64_t one = (counts.expert + counts.router) / 16;  // with its router column
  CHECK(parameters_per_site(scenario) == counts.dense() + 11 * one);
  const SentBytes sent = summarise(scenario).sent;
  const double bytes = 2.0 * static_cast<double>(one);  // bf16
  CHECK(sent.expert_sync == doctest::Approx(1 * 32.0 / 3 * bytes).epsilon(1e-14));
  // 6·(1 − 6/8) + 2 · 5·(1 − 5/8) of each layer arrive at three sites.
  CHECK(sent.migration == doctest::Approx(2 * (1.5 + 2 * 1.875) / 3 * bytes * 1199 / 1200).epsilon(1e-14));
  // The formula gives the expectation, and 400 draws of about 10.5 experts have an error of 1 %.
  const Plan plan = tests::plan_of(scenario);
  double migrated = 0;
  for (std::int64_t round = 0; round < 400; ++round)
    migrated += tests::sent_in_round(plan, 3, round).migration / 400;
  CHECK(migrated == doctest::Approx(sent.migration).epsilon(0.03));

  scenario.strategy.placement = PlacementKind::fixed;
  const RunReport report = closed_form(scenario);
  const double dense = 2.0 * 2 / 3 * 2.0 * static_cast<double>(counts.dense());
  for (int site = 0; site < 3; ++site) {
    const double held = site < 2 ? 11 : 10;
    const SiteReport& row = report.sites[static_cast<std::size_t>(site)];
    CHECK(row.bytes_sent == doctest::Approx(1200 * (dense + held * bytes)).epsilon(1e-14));
    CHECK(row.bytes_received == doctest::Approx(row.bytes_sent).epsilon(1e-14));
    CHECK(row.memory_bytes ==
          26.0 * static_cast<double>(counts.dense() + static_cast<std::int64_t>(held) * one));
  }
  // The slowest port decides: 1 GB/s.
  CHECK(report.round.communication_s == doctest::Approx((dense + 11 * bytes) / 1e9).epsilon(1e-14));

  // With skip-token, a token's 2 experts are local with probability 11/16, 11/16 and 10/16.
  scenario.strategy.skip_token = true;
  const double all = flops_per_token(scenario.model, 8, false, FlopsAccounting::mechanism).expert;
  const Counts of_sites = counts_of(scenario);
  CHECK(of_sites.at(1).flops_per_token.expert == doctest::Approx(all * 11 / 16).epsilon(1e-14));
  CHECK(of_sites.at(2).flops_per_token.expert == doctest::Approx(all * 10 / 16).epsilon(1e-14));
  CHECK(flops_per_token(scenario).expert == doctest::Approx(all * 32 / 48).epsilon(1e-14));
}

TEST_CASE("fomoe: where each site gets as many experts in all layers, they are alike as if in each layer") {
  // Three layers of 16 copies at three sites: 16 for each site.
  Scenario scenario = tests::ideal_scenario("fomoe", 3, 2);
  scenario.model.layers = 3;
  CHECK_FALSE(expert_shares(scenario).differ());
  CHECK(expert_shares(scenario).of_layer(2) == 16.0 / 3);
  const RunReport report = closed_form(scenario);
  CHECK(report.sites[0].bytes_sent == report.sites[2].bytes_sent);
  CHECK(report.sites[0].memory_bytes == report.sites[2].memory_bytes);
}

TEST_CASE("fomoe: a rotated placement sends the bytes of the fixed one, and needs equally many experts") {
  Scenario scenario = tests::ideal_scenario("fomoe", 4, 2);
  const double fixed = tests::sent_in_round(tests::plan_of(scenario), 4, 0).total();
  scenario.strategy.placement = PlacementKind::rotated;
  const Plan plan = tests::plan_of(scenario);
  CHECK(tests::sent_in_round(plan, 4, 0).total() == doctest::Approx(fixed).epsilon(1e-12));
  CHECK(migrations(plan.placement(0), plan.placement(1)).empty());
  CHECK(closed_form(scenario).sites[0].bytes_sent ==
        doctest::Approx(static_cast<double>(plan.rounds) * fixed).epsilon(1e-9));
  scenario.model.experts = 9;
  CHECK_THROWS_AS(check(scenario), InputError);
}
