// Tests of hierarchical all-reduces and of secure aggregation, composed with methods that know of neither.
#include "costmodel/compose/composition.hpp"

#include <doctest/doctest.h>

#include "costmodel/compose/check.hpp"
#include "costmodel/compose/make_plan.hpp"
#include "costmodel/formula/closed_form.hpp"
#include "costmodel/methods/all.hpp"
#include "costmodel/plan/method.hpp"
#include "platforms/support/input_error.hpp"
#include "tests/plan_bytes.hpp"
#include "tests/scenarios.hpp"

using namespace fomoe;
using namespace fomoe::costmodel;

namespace {

Scenario in_regions(const char* method, int sites, int regions) {
  Scenario scenario = tests::ideal_scenario(method, sites);
  scenario.strategy.collective = Collective::hierarchical;
  scenario.strategy.regions = regions;
  return scenario;
}

}  // namespace

TEST_CASE("hierarchical: 2(M−1)/M·S as on one ring, in 2(n−1) + 2(R−1) latencies") {
  for (const char* method : {"ddp", "diloco", "local_adamw"}) {
    for (const int regions : {2, 4}) {
      Scenario scenario = in_regions(method, 8, regions);
      const double hierarchical = tests::sent_in_round(tests::plan_of(scenario), scenario.sites(), 0).total();
      const PlanSummary summary = summarise(scenario);
      scenario.strategy.collective = Collective::ring;
      CHECK(hierarchical ==
            doctest::Approx(tests::sent_in_round(tests::plan_of(scenario), scenario.sites(), 0).total())
                .epsilon(1e-13));
      CHECK(summary.sent.total() == doctest::Approx(hierarchical).epsilon(1e-13));
      CHECK(summary.stages[0].latency_hops == 2 * (8.0 / regions - 1) + 2 * (regions - 1));
    }
  }
}

TEST_CASE("hierarchical, 4 sites in 2 regions: reduce-scatter, all-reduce of half the payload, all-gather") {
  const Scenario scenario = in_regions("diloco", 4, 2);
  const RoundPlan plain = find_method("diloco")->plan(scenario).round(0);
  const RoundPlan round = composed_plan(scenario).round(0);
  REQUIRE(round.ops.size() == plain.ops.size() + 2);
  const auto& scatter = std::get<Transfer>(round.ops[1].what);
  const auto& across = std::get<Transfer>(round.ops[2].what);
  const auto& gather = std::get<Transfer>(round.ops[3].what);
  CHECK(scatter.pattern == Pattern::reduce_scatter);
  CHECK(across.pattern == Pattern::all_reduce);
  CHECK(gather.pattern == Pattern::all_gather);
  CHECK(scatter.exchanges[0].nodes == std::vector<NodeId>{0, 1});
  CHECK(scatter.exchanges[1].nodes == std::vector<NodeId>{2, 3});
  CHECK(across.exchanges[0].nodes == std::vector<NodeId>{0, 2});  // position 0 of both regions, chunk 0
  CHECK(across.exchanges[1].nodes == std::vector<NodeId>{1, 3});
  CHECK(across.exchanges[0].bytes() == scatter.exchanges[0].bytes() / 2);
  CHECK(across.exchanges[1].payloads[0].chunk == 1);
  CHECK(across.exchanges[1].payloads[0].chunks == 2);
  CHECK(round.ops[2].after == std::vector<OpId>{1});
  CHECK(round.ops[3].after == std::vector<OpId>{2});
  CHECK(round.ops[4].after == std::vector<OpId>{3});  // the operation that followed the all-reduce
}

TEST_CASE("hierarchical: owners that are not spread evenly over the regions keep their ring") {
  Scenario scenario = in_regions("fomoe", 4, 2);
  scenario.strategy.expert_overlap = 2;  // both owners are in one region
  const RoundPlan round = composed_plan(scenario).round(0);
  for (const Op& op : round.ops) {
    const auto* transfer = std::get_if<Transfer>(&op.what);
    if (transfer == nullptr || op.name != "all-reduce experts") continue;
    CHECK(transfer->collective == Collective::ring);
    CHECK(transfer->pattern == Pattern::all_reduce);
  }
  CHECK(tests::sent_in_round(tests::plan_of(scenario), scenario.sites(), 0).total() ==
        doctest::Approx(summarise(scenario).sent.total()).epsilon(1e-13));
}

TEST_CASE("secure aggregation: 4 B per element, and 160 B to each other site in a round") {
  for (const int sites : {2, 4, 8}) {
    Scenario scenario = tests::ideal_scenario("diloco", sites);
    scenario.strategy.wire = masked_format();
    scenario.strategy.secure_aggregation = true;
    const double payload = 4.0 * static_cast<double>(count_parameters(scenario.model).total());
    const double expected = 2.0 * (sites - 1) / sites * payload + 160.0 * (sites - 1);
    CHECK(tests::sent_in_round(tests::plan_of(scenario), scenario.sites(), 0).total() ==
          doctest::Approx(expected).epsilon(1e-14));
    CHECK(summarise(scenario).sent.total() == doctest::Approx(expected).epsilon(1e-14));
  }
}

TEST_CASE("secure aggregation by hand: M = 2, 1 GB/s, 10 ms: three latencies more in each round") {
  Scenario scenario = tests::ideal_scenario("diloco", 2);
  scenario.platform = platforms::uniform(2, 1e9, 1e9, 0.010);
  scenario.strategy.wire = masked_format();
  scenario.strategy.secure_aggregation = true;
  const double payload = 4.0 * static_cast<double>(count_parameters(scenario.model).total());
  CHECK(closed_form(scenario).round.duration_s ==
        doctest::Approx(5 * 1.0 + (2 + 3) * 0.010 + (payload + 160) / 1e9).epsilon(1e-12));
}

TEST_CASE("secure aggregation: keys come before every sum, and masks are removed before the sum is used") {
  Scenario scenario = tests::ideal_scenario("fomoe", 4, 2);
  scenario.strategy.secure_aggregation = true;
  const RoundPlan round = composed_plan(scenario).round(0);
  // Operations: 0 local steps, 1 keys, 2 shares, 3 dense and 4 experts, 5 removal of masks, 6 outer step.
  REQUIRE(round.ops.size() == 7);
  CHECK(round.ops[1].after == std::vector<OpId>{0});
  CHECK(round.ops[3].after == std::vector<OpId>{2});
  CHECK(round.ops[4].after == std::vector<OpId>{2});
  CHECK(round.ops[5].after == std::vector<OpId>{3, 4});
  for (const OpId before : round.ops[6].after) CHECK(before == 5);
}

TEST_CASE(
    "an operation that waits for a sum of the round before waits for the last part of the composed sum") {
  for (const bool secure : {false, true}) {
    Scenario scenario = in_regions("eager_diloco", 4, 2);
    scenario.strategy.secure_aggregation = secure;
    if (secure) scenario.strategy.collective = Collective::ring;
    const Plan plan = composed_plan(scenario);
    const RoundPlan before = plan.round(0), round = plan.round(1);
    REQUIRE(round.ops[1].after_earlier.size() == 1);
    const Op& awaited = before.ops[static_cast<std::size_t>(round.ops[1].after_earlier[0].op)];
    CHECK(awaited.name == (secure ? "remove masks" : "average pseudo-gradients: gather inside regions"));
    for (std::size_t op = 2; op < round.ops.size(); ++op) CHECK(round.ops[op].detached);
  }
}

TEST_CASE("an impossible number of owners is refused with the nearest possible one") {
  for (const auto& [overlap, nearest] : {std::pair{0, "for example 1"}, {9, "for example 8"}}) {
    Scenario scenario = tests::ideal_scenario("fomoe", 8, 1);
    scenario.strategy.expert_overlap = overlap;
    try {
      check(scenario);
      FAIL("accepted");
    } catch (const InputError& error) {
      CHECK_MESSAGE(std::string(error.what()).find(nearest) != std::string::npos, error.what());
    }
  }
}

TEST_CASE("impossible compositions are refused") {
  CHECK_THROWS_AS(check(in_regions("diloco", 4, 3)), InputError);
  CHECK_THROWS_AS(check(in_regions("diloco", 4, 1)), InputError);
  CHECK_THROWS_AS(check(in_regions("fsdp", 4, 2)), InputError);  // a gather is not a sum
  CHECK_NOTHROW(check(in_regions("diloco", 4, 2)));
  Scenario masked = tests::ideal_scenario("pipeline_wan", 2);
  masked.strategy.micro_batches = 2;
  masked.strategy.secure_aggregation = true;
  CHECK_THROWS_AS(check(masked), InputError);  // activations would be sent unmasked
}
