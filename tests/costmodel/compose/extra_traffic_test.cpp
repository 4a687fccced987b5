// Tests of the extra traffic of data, checkpoints and rejoining sites: bytes by hand, and the formula against
// the plan.
#include "costmodel/compose/extra_traffic.hpp"

#include <doctest/doctest.h>

#include <map>

#include "costmodel/compose/check.hpp"
#include "costmodel/compose/make_plan.hpp"
#include "costmodel/counts/memory.hpp"
#include "costmodel/formula/closed_form.hpp"
#include "costmodel/methods/all.hpp"
#include "costmodel/plan/method.hpp"
#include "platforms/support/input_error.hpp"
#include "tests/scenarios.hpp"

using namespace fomoe;
using namespace fomoe::costmodel;

namespace {

// Returns the bytes of each class that the round's point-to-point transfers move, summed over all sites.
std::map<TrafficClass, double> extra_bytes(const RoundPlan& round) {
  std::map<TrafficClass, double> sum;
  for (const Op& op : round.ops) {
    const auto* transfer = std::get_if<Transfer>(&op.what);
    if (transfer == nullptr || transfer->pattern != Pattern::point_to_point) continue;
    for (const Exchange& exchange : transfer->exchanges) {
      for (const Payload& payload : exchange.payloads)
        sum[payload.traffic] += static_cast<double>(payload.bytes());
    }
  }
  return sum;
}

Scenario scenario_with_all(const char* method = "diloco") {
  Scenario scenario = tests::ideal_scenario(method, 4);
  scenario.traffic.data_site = 0;
  scenario.traffic.data_bytes_per_token = 4;
  scenario.traffic.checkpoint_site = 1;
  scenario.traffic.checkpoint_rounds = 10;
  scenario.traffic.rejoin_site = 3;
  scenario.traffic.rejoin_rounds = 20;
  return scenario;
}

}  // namespace

TEST_CASE("extra traffic: it is off by default, and the plan is then the method's own") {
  const Scenario scenario = tests::ideal_scenario("diloco", 4);
  CHECK(make_plan(scenario).round(0).ops.size() == find_method("diloco")->plan(scenario).round(0).ops.size());
  CHECK(summarise(scenario).sent.data == 0);
}

TEST_CASE("extra traffic: bytes of a round by hand") {
  const Scenario scenario = scenario_with_all();
  const Plan plan = make_plan(scenario);
  auto bytes = extra_bytes(plan.round(0));
  // 5 steps of one sequence of 10 tokens at 4 B, for each of the three sites that do not store the data set.
  CHECK(bytes[TrafficClass::data] == 3 * 5 * 10 * 4);
  // fp32 weights, two moments, and the fp32 anchor and momentum of the outer step: 4 + 8 + 8 B per parameter.
  const double state = 20.0 * static_cast<double>(parameters_per_site(scenario));
  CHECK(state_bytes_per_site(scenario) == 20 * static_cast<double>(parameters_per_site(scenario)));
  CHECK(bytes[TrafficClass::checkpoint] == 3 * state / 10);
  CHECK(bytes[TrafficClass::rejoin] == state / 20);
}

TEST_CASE("extra traffic: the formula gives the mean over sites of the bytes in the plan's rounds") {
  for (const char* method : {"diloco", "local_adamw", "ddp"}) {
    CAPTURE(method);
    const Scenario scenario = scenario_with_all(method);
    const PlanSummary summary = summarise(scenario);
    auto bytes = extra_bytes(make_plan(scenario).round(0));
    CHECK(summary.sent.data == doctest::Approx(bytes[TrafficClass::data] / 4).epsilon(1e-12));
    CHECK(summary.sent.checkpoint ==
          doctest::Approx(bytes[TrafficClass::checkpoint] / 4).epsilon(1e-8));  // rounded to bytes
    CHECK(summary.sent.rejoin == doctest::Approx(bytes[TrafficClass::rejoin] / 4).epsilon(1e-8));
  }
}

TEST_CASE(
    "extra traffic: only the next round waits for data and checkpoints, but every operation for the rejoin") {
  const RoundPlan round = make_plan(scenario_with_all()).round(0);
  REQUIRE(round.ops.front().name == "fetch state to rejoin");
  CHECK(round.ops.front().after.empty());
  for (std::size_t i = 1; i < round.ops.size(); ++i) {
    const Op& op = round.ops[i];
    CAPTURE(op.name);
    CHECK_FALSE(op.after.empty());
    for (const OpId before : op.after) CHECK(before < static_cast<OpId>(i));  // ids shifted alike
    CHECK_FALSE(op.detached);
  }
  for (const Op& op : round.ops) {
    for (const OpId before : op.after) {
      const std::string& name = round.ops[static_cast<std::size_t>(before)].name;
      CHECK(name != "read data");
      CHECK(name != "upload checkpoint");
    }
  }
  // The all-reduce still follows the local steps, and the outer step still follows the all-reduce.
  CHECK(round.ops[2].after == std::vector<OpId>{1});
  CHECK(round.ops[3].after == std::vector<OpId>{2});
}

TEST_CASE(
    "extra traffic: a rejoining site gets its state from the checkpoint's site, else from the first other") {
  ExtraTraffic traffic;
  traffic.rejoin_site = 0;
  CHECK(rejoin_source(traffic) == 1);
  traffic.rejoin_site = 2;
  CHECK(rejoin_source(traffic) == 0);
  traffic.checkpoint_site = 3;
  CHECK(rejoin_source(traffic) == 3);
  traffic.rejoin_site = 3;  // this site has also lost the checkpoints that it stored
  CHECK(rejoin_source(traffic) == 0);
}

TEST_CASE("extra traffic: a method that trains at the first site alone has data and checkpoints only there") {
  Scenario scenario = tests::ideal_scenario("centralised", 4);
  scenario.traffic.data_site = scenario.traffic.checkpoint_site = 0;
  CHECK_NOTHROW(check(scenario));
  CHECK(summarise(scenario).sent.total() == 0);
  for (auto site : {&ExtraTraffic::data_site, &ExtraTraffic::checkpoint_site, &ExtraTraffic::rejoin_site}) {
    Scenario elsewhere = scenario;
    elsewhere.traffic.*site = 1;
    CHECK_THROWS_AS(check(elsewhere), InputError);
  }
}

TEST_CASE(
    "extra traffic: the two ends of a pipeline read the whole batch of their pipeline, others nothing") {
  for (const int stage_sites : {1, 2, 4}) {
    for (const int data_site : {0, 2}) {
      Scenario scenario = tests::ideal_scenario("pipeline_wan", 4);
      scenario.model.layers = 4;
      scenario.strategy.stage_sites = stage_sites;
      scenario.strategy.micro_batches = 1;
      scenario.traffic.data_site = data_site;
      scenario.traffic.data_bytes_per_token = 4;
      CAPTURE(stage_sites);
      CAPTURE(data_site);
      const double of_pipeline = 4.0 / stage_sites * 10 * 4;  // sequences · tokens · bytes
      const Plan plan = make_plan(scenario);
      std::map<int, double> read;
      for (const Op& op : plan.round(0).ops) {
        if (op.name != "read data") continue;
        for (const Exchange& exchange : std::get<Transfer>(op.what).exchanges)
          read[exchange.nodes[1]] += static_cast<double>(exchange.payloads[0].bytes());
      }
      double all = 0;
      for (int site = 0; site < 4; ++site) {
        const bool reads = (site < stage_sites || site >= 4 - stage_sites) && site != data_site;
        CHECK(read[site] == (reads ? of_pipeline : 0));
        all += read[site];
      }
      CHECK(summarise(scenario).sent.data == doctest::Approx(all / 4).epsilon(1e-12));
    }
  }
}
