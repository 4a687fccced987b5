// Tests of exchanges through a store: payloads, objects and requests, by hand.
#include <doctest/doctest.h>

#include <set>
#include <tuple>

#include "costmodel/compose/make_plan.hpp"
#include "costmodel/formula/closed_form.hpp"
#include "costmodel/plan/collective_steps.hpp"
#include "costmodel/plan/method.hpp"
#include "tests/plan_bytes.hpp"
#include "tests/scenarios.hpp"

using namespace fomoe;
using namespace fomoe::costmodel;
using doctest::Approx;

namespace {

using Sends = std::multiset<std::tuple<int, int, int, bool>>;  // from, to, whose payload, result

Sends sends(Pattern pattern, int nodes, int step) {
  Sends all;
  CollectiveSteps(pattern, Collective::store, nodes).each(step, [&](const Sending& sent) {
    all.emplace(sent.from, sent.to, sent.result ? -1 : sent.first, sent.result);
  });
  return all;
}

Scenario stored(const char* method, int sites, bool aggregates, int overlap = 0) {
  return tests::through_store(tests::every_axis_scenario(method, sites, overlap), aggregates);
}

double elements_of(const Scenario& scenario) {
  return static_cast<double>(count_parameters(scenario.model).total());
}

}  // namespace

TEST_CASE(
    "the result of sparse payloads: the union of independent positions, or all values if that is smaller") {
  // 2 + 12 bits for each of 1/64 of the values. Of two sites, 1 − (63/64)² = 127/4096 of the values are sent.
  const WireFormat payload = top_k_format(ElementType::int2, 1.0 / 64, 12);
  const WireFormat of_two = result_format(payload, 2, {});
  CHECK(of_two.kept_share == Approx(127.0 / 4096).epsilon(1e-12));
  CHECK(of_two.bytes_per_element() == Approx(127.0 / 4096 * 14 / 8).epsilon(1e-12));
  // Of 20 sites, 27 % · 14 bits are more than 2 bits for each value.
  const WireFormat of_twenty = result_format(payload, 20, {});
  CHECK_FALSE(of_twenty.sparse());
  CHECK(of_twenty.bytes(4096) == 4096 * 2 / 8);
  // An aggregator that keeps 1/64 again returns as many bytes as a payload has.
  CHECK(result_format(payload, 20, 1.0 / 64).bytes(4096) == payload.bytes(4096));
  // Dense payloads add up.
  const WireFormat dense = plain_format(ElementType::int8);
  CHECK(result_format(dense, 20, {}) == dense);
}

TEST_CASE(
    "steps through a store at position 0: each payload goes up once, and comes down as a result or as it "
    "is") {
  CHECK(CollectiveSteps(Pattern::all_reduce, Collective::store, 3).count() == 2);
  CHECK(sends(Pattern::all_reduce, 3, 0) == Sends{{1, 0, 1, false}, {2, 0, 2, false}});
  CHECK(sends(Pattern::all_reduce, 3, 1) == Sends{{0, 1, -1, true}, {0, 2, -1, true}});
  CHECK(sends(Pattern::all_to_all_broadcast, 4, 1) == Sends{{0, 1, 2, false},
                                                            {0, 1, 3, false},
                                                            {0, 2, 1, false},
                                                            {0, 2, 3, false},
                                                            {0, 3, 1, false},
                                                            {0, 3, 2, false}});
  CHECK(sends(Pattern::broadcast, 4, 0) == Sends{{1, 0, 1, false}});
  CHECK(sends(Pattern::broadcast, 4, 1) == Sends{{0, 2, 1, false}, {0, 3, 1, false}});
  CHECK(CollectiveSteps(Pattern::all_reduce, Collective::store, 2).count() == 0);  // nobody else contributes
}

TEST_CASE("the store is a node without sequences, behind the last site") {
  const Plan plan = tests::plan_of(stored("diloco", 4, true));
  REQUIRE(plan.nodes.size() == 5);
  CHECK(plan.nodes[4].kind == NodeKind::store);
  CHECK(plan.nodes[4].site == 4);
  CHECK(plan.nodes[4].sequences == 0);
}

TEST_CASE("diloco through a store: S up, and S down or (M − 1)·S down") {
  for (const bool aggregates : {true, false}) {
    const Scenario scenario = stored("diloco", 4, aggregates);
    const double payload = 2 * elements_of(scenario);  // bf16
    CHECK(tests::sent_in_round(tests::plan_of(scenario), 4, 0).total() == Approx(payload).epsilon(1e-14));
    const PlanSummary summary = summarise(scenario);
    CHECK(summary.sent.total() == Approx(payload).epsilon(1e-14));
    CHECK(summary.received_bytes() == Approx((aggregates ? 1 : 3) * payload).epsilon(1e-14));
    // One object of each site: put once, and got once each, or each by three others.
    const double requests = aggregates ? 4 + 4 : 4 + 4 * 3;
    CHECK(4 * summary.store_requests() == Approx(requests));
    const Plan plan = tests::plan_of(scenario);
    CHECK(store_requests(plan.nodes, plan.round(0)) == requests);
  }
}

TEST_CASE("sparse_loco through a store: S·64/4096·14/8 bytes up, however many sites there are") {
  for (const int sites : {2, 8}) {
    const Scenario scenario = stored("sparse_loco", sites, false);
    const double payload = elements_of(scenario) * 64 / 4096 * 14 / 8;
    CHECK(tests::sent_in_round(tests::plan_of(scenario), sites, 0).total() == Approx(payload).epsilon(1e-14));
    CHECK(summarise(scenario).received_bytes() == Approx((sites - 1) * payload).epsilon(1e-14));
  }
  Scenario scenario = stored("sparse_loco", 2, true);
  const double both = elements_of(scenario) * 127 / 4096 * 14 / 8;  // the union of two payloads
  CHECK(summarise(scenario).received_bytes() == Approx(both).epsilon(1e-12));
  const Plan plan = tests::plan_of(scenario);
  const RoundPlan round = plan.round(0);
  const auto& transfer = std::get<Transfer>(round.ops[1].what);
  double result = 0;
  for (const Payload& payload : transfer.exchanges[0].payloads)
    result += static_cast<double>(payload.result_bytes());
  CHECK(result == Approx(both).epsilon(1e-6));
  scenario.platform.store->result_share = 1.0 / 64;
  CHECK(summarise(scenario).received_bytes() == Approx(summarise(scenario).sent.total()).epsilon(1e-14));
}

TEST_CASE(
    "fedavg through a store: the server is beside it, each of the M sites sends S and receives parameters") {
  Scenario scenario = stored("fedavg", 4, true);
  scenario.strategy.wire = plain_format(ElementType::int8);
  const Plan plan = tests::plan_of(scenario);
  REQUIRE(plan.nodes.size() == 5);
  const RoundPlan round = plan.round(0);
  CHECK(std::get<Compute>(round.ops[2].what).nodes == std::vector<NodeId>{4});
  const double elements = elements_of(scenario), up = elements * (1 + 4.0 / 256), down = 2 * elements;
  CHECK(tests::sent_in_round(plan, 4, 0).total() == Approx(up).epsilon(1e-14));
  const PlanSummary summary = summarise(scenario);
  CHECK(summary.sent.total() == Approx(up).epsilon(1e-14));
  CHECK(summary.received_bytes() == Approx(down).epsilon(1e-14));
  CHECK(store_requests(plan.nodes, round) == 8);
}

TEST_CASE(
    "fomoe through a store: a site uploads the dense part and the experts that it holds, as two objects") {
  const Scenario scenario = stored("fomoe", 4, true, 2);
  const ParameterCounts counts = count_parameters(scenario.model);
  const double dense = 2.0 * static_cast<double>(counts.dense()),
               experts = 2.0 * static_cast<double>(counts.expert + counts.router);
  const Plan plan = tests::plan_of(scenario);
  const SentBytes sent = tests::sent_in_round(plan, 4, 0);
  CHECK(sent.dense == Approx(dense).epsilon(1e-14));
  CHECK(sent.expert_sync == Approx(experts / 2).epsilon(1e-14));
  CHECK(summarise(scenario).received_bytes() == Approx(dense + experts / 2).epsilon(1e-14));
  // Sites 0 and 1 hold the same experts, and so do 2 and 3: two objects of each site, each put and got once.
  CHECK(store_requests(plan.nodes, plan.round(0)) == 4 * 2 * 2);
  CHECK(summarise(scenario).store_requests() == Approx(4));
}

TEST_CASE("fomoe through a store, with O_e that does not divide M: a site has O_e/gcd sets of owners") {
  Scenario scenario = stored("fomoe", 6, true, 4);
  scenario.model.experts = 6;
  const Plan plan = tests::plan_of(scenario);
  // Experts 0, 3 are at 0 1 2 3, experts 1, 4 at 4 5 0 1, and experts 2, 5 at 2 3 4 5: three sets of four.
  CHECK(store_requests(plan.nodes, plan.round(0)) == 2 * 6 + 3 * 2 * 4);
  CHECK(6 * summarise(scenario).store_requests() == Approx(2 * 6 + 3 * 2 * 4));
}

TEST_CASE("migrating experts go through the store too: up by an old owner, down by the new one") {
  Scenario scenario = stored("fomoe", 4, true, 2);
  scenario.strategy.placement = PlacementKind::random;
  const Plan plan = tests::plan_of(scenario);
  const RoundPlan round = plan.round(0);
  const auto& move = std::get<Transfer>(round.ops.back().what);
  CHECK(round.ops.back().name == "migrate experts");
  CHECK(through_store(move));
  REQUIRE(!move.exchanges.empty());
  for (const Exchange& exchange : move.exchanges) {
    CHECK(exchange.nodes.size() == 3);
    CHECK(exchange.nodes[0] == 4);
  }
  Scenario direct = tests::every_axis_scenario("fomoe", 4, 2);
  direct.strategy.placement = PlacementKind::random;
  CHECK(summarise(scenario).sent.migration == Approx(summarise(direct).sent.migration).epsilon(1e-14));
}

TEST_CASE("for every method through a store the summary by formula equals the summary of the plan") {
  for (const Method& method : methods()) {
    if (!method.through_store) continue;
    for (const bool aggregates : {true, false}) {
      for (const int sites : {2, 4, 8}) {
        for (int overlap = 1; overlap <= sites; overlap *= 2) {
          const Scenario scenario = stored(method.name.c_str(), sites, aggregates, overlap);
          const Plan plan = method.plan(scenario);
          const PlanSummary summary = summarise(scenario);
          const SentBytes sent = tests::sent_in_mean_round(plan, sites);
          CAPTURE(method.name);
          CAPTURE(overlap);
          CHECK(summary.sent.dense == Approx(sent.dense).epsilon(1e-13));
          CHECK(summary.sent.expert_sync == Approx(sent.expert_sync).epsilon(1e-13));
          CHECK(sites * summary.store_requests() ==
                Approx(store_requests(plan.nodes, plan.round(0))).epsilon(1e-12));
        }
      }
    }
  }
}

TEST_CASE("a store that is not used is named in a note, and one that is used is not") {
  const auto notes = [](const Scenario& scenario, const char* part) {
    int count = 0;
    for (const std::string& note : ignored_axes(scenario)) count += note.find(part) != note.npos ? 1 : 0;
    return count;
  };
  Scenario scenario = stored("fedavg", 4, true);
  CHECK(notes(scenario, "platform.store") == 0);
  CHECK(notes(scenario, "collective") == 0);
  scenario.strategy.collective = Collective::ring;
  CHECK(notes(scenario, "platform.store") == 1);
  scenario.strategy.collective = Collective::direct;  // its star
  CHECK(notes(scenario, "does not use collective") == 0);
  scenario.strategy.collective = Collective::recursive;
  CHECK(notes(scenario, "does not use collective") == 1);
}
