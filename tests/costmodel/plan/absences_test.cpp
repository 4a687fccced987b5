// Tests of rounds without the nodes of lost sites.
#include "costmodel/plan/absences.hpp"

#include <doctest/doctest.h>

#include <algorithm>

#include "costmodel/plan/method.hpp"
#include "tests/plan_bytes.hpp"
#include "tests/scenarios.hpp"

using namespace fomoe;
using namespace fomoe::costmodel;

namespace {

const std::vector<bool> kWithoutThird = {false, false, true, false};

bool names_node(const RoundPlan& round, NodeId node) {
  const auto has = [&](const std::vector<NodeId>& nodes) {
    return std::find(nodes.begin(), nodes.end(), node) != nodes.end();
  };
  for (const Op& op : round.ops) {
    if (const auto* compute = std::get_if<Compute>(&op.what); compute != nullptr && has(compute->nodes))
      return true;
    const auto* transfer = std::get_if<Transfer>(&op.what);
    if (transfer == nullptr) continue;
    for (const Exchange& exchange : transfer->exchanges) {
      if (has(exchange.nodes)) return true;
    }
  }
  return false;
}

std::size_t exchanges_in(const RoundPlan& round) {
  std::size_t count = 0;
  for (const Op& op : round.ops) {
    if (const auto* transfer = std::get_if<Transfer>(&op.what)) count += transfer->exchanges.size();
  }
  return count;
}

}  // namespace

TEST_CASE("without a node, the others compute as before and average among themselves") {
  for (const char* method : {"ddp", "diloco", "local_adamw", "streaming_diloco", "des_loc"}) {
    CAPTURE(std::string(method));
    const Plan plan = tests::plan_of(tests::ideal_scenario(method, 4, 4));
    CHECK(needs_all_nodes(plan).empty());
    const std::vector<bool> indispensable = indispensable_nodes(plan);
    CHECK(std::none_of(indispensable.begin(), indispensable.end(), [](bool one) { return one; }));
    const RoundPlan whole = plan.round(0), rest = without(plan.round(0), kWithoutThird);
    CHECK(names_node(whole, 2));
    CHECK_FALSE(names_node(rest, 2));
    for (const NodeId node : {0, 1, 3}) CHECK(names_node(rest, node));
    REQUIRE(rest.ops.size() == whole.ops.size());  // operations keep their numbers
    CHECK(exchanges_in(rest) == exchanges_in(whole));
    for (std::size_t op = 0; op < whole.ops.size(); ++op) {
      CHECK(rest.ops[op].after == whole.ops[op].after);
      const auto* transfer = std::get_if<Transfer>(&rest.ops[op].what);
      if (transfer == nullptr) continue;
      for (const Exchange& exchange : transfer->exchanges)
        CHECK(exchange.nodes == std::vector<NodeId>{0, 1, 3});
    }
  }
}

TEST_CASE("an expert with one owner left is sent by nobody") {
  Scenario scenario = tests::ideal_scenario("fomoe", 4, 2);  // pairs of owners: 0 and 1, 2 and 3
  scenario.strategy.placement = PlacementKind::fixed;
  const Plan plan = tests::plan_of(scenario);
  CHECK(needs_all_nodes(plan).empty());
  const RoundPlan rest = without(plan.round(0), kWithoutThird);
  std::size_t alone = 0;
  for (const Op& op : rest.ops) {
    const auto* transfer = std::get_if<Transfer>(&op.what);
    if (transfer == nullptr) continue;
    for (const Exchange& exchange : transfer->exchanges) {
      const bool expert = exchange.payloads.front().traffic == TrafficClass::expert_sync;
      if (exchange.nodes == std::vector<NodeId>{3}) {  // its own difference is the average
        CHECK(expert);
        CHECK(!takes_part({"one exchange", Transfer{transfer->pattern, transfer->collective, {exchange}}, {}},
                          3));
        ++alone;
        continue;
      }
      CHECK(exchange.nodes == (expert ? std::vector<NodeId>{0, 1} : std::vector<NodeId>{0, 1, 3}));
    }
  }
  CHECK(alone == 2 * 8 / 2);  // half of the experts of two layers
  CHECK(exchanges_in(rest) == exchanges_in(plan.round(0)));
}

TEST_CASE("plans that need all nodes are named, and so are nodes that others cannot do without") {
  Scenario moving = tests::ideal_scenario("fomoe", 4, 2);
  moving.strategy.placement = PlacementKind::random;
  CHECK(needs_all_nodes(tests::plan_of(moving)) == "migration");
  // Two experts at two sites: a draw equals the first placement with a probability of one half.
  Scenario few = tests::ideal_scenario("fomoe", 2, 1);
  few.strategy.placement = PlacementKind::random;
  few.model.layers = 1;
  few.model.experts = 2;
  few.model.active_experts = 1;
  few.workload.tokens *= 20;
  for (few.seed = 1; few.seed <= 16; ++few.seed) CHECK(needs_all_nodes(tests::plan_of(few)) == "migration");
  moving.workload.tokens = 5LL * 4 * 10;  // one round: experts would move only after it
  REQUIRE(tests::plan_of(moving).rounds == 1);
  CHECK(needs_all_nodes(tests::plan_of(moving)).empty());

  Scenario halving = tests::ideal_scenario("diloco", 4, 4);
  halving.strategy.collective = Collective::recursive;
  CHECK_FALSE(needs_all_nodes(tests::plan_of(halving)).empty());

  for (const Pattern sharded :
       {Pattern::reduce_scatter, Pattern::all_gather}) {  // each node has its own part
    Plan plan = tests::plan_of(tests::ideal_scenario("diloco", 4, 4));
    plan.round = [inner = plan.round, sharded](std::int64_t index) {
      RoundPlan round = inner(index);
      for (Op& op : round.ops) {
        if (auto* transfer = std::get_if<Transfer>(&op.what)) transfer->pattern = sharded;
      }
      return round;
    };
    CHECK_FALSE(needs_all_nodes(plan).empty());
  }

  const Plan server = tests::plan_of(tests::ideal_scenario("fedavg", 4, 4));
  const std::vector<bool> indispensable = indispensable_nodes(server);
  for (std::size_t node = 0; node < server.nodes.size(); ++node)
    CHECK(indispensable[node] == (server.nodes[node].kind == NodeKind::server));
}
