// Tests of workers that train at their own pace.
#include "costmodel/methods/shared/own_pace.hpp"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "costmodel/plan/method.hpp"
#include "tests/plan_bytes.hpp"
#include "tests/scenarios.hpp"

using namespace fomoe;
using namespace fomoe::costmodel;

namespace {

// Steps of 1 s, K = 5, 60 steps, no transfer time; factors are those of the sites' steps.
Scenario sites_with(const std::vector<double>& factors) {
  Scenario scenario = tests::ideal_scenario("async_diloco", static_cast<int>(factors.size()));
  scenario.platform = platforms::uniform(scenario.sites(), 1e18, 1e18, 0);
  for (std::size_t i = 0; i < factors.size(); ++i) scenario.platform.sites[i].compute_factor = factors[i];
  return scenario;
}

std::int64_t local_steps_of_run(const Plan& plan, NodeId node) {
  std::int64_t steps = 0;
  for (std::int64_t r = 0; r < plan.rounds; ++r) {
    for (const Op& op : plan.round(r).ops) {
      const auto* compute = std::get_if<Compute>(&op.what);
      if (compute != nullptr && compute->work == Work::whole_step && compute->nodes.front() == node)
        steps += compute->repeat;
    }
  }
  return steps;
}

}  // namespace

TEST_CASE("own pace: cycles are as many as fit into the same time, and train all sequences") {
  const std::vector<Pace> paces = own_paces(sites_with({1, 2, 4, 1}), 1, 1);
  // 4 · 60 ÷ 5 = 48 cycles at 1/5, 1/10, 1/20 and 1/5 per second: 87.3 s, hence 17, 8, 4 and 17; the next
  // cycles would end at 90, 90, 100 and 90 s.
  CHECK(paces[0].cycles == 18);
  CHECK(paces[1].cycles == 9);
  CHECK(paces[2].cycles == 4);
  CHECK(paces[3].cycles == 17);
}

TEST_CASE("own pace: the plan has each worker's cycles, and a cycle waits for the previous one's model") {
  const Scenario scenario = sites_with({1, 2, 4, 1});
  const Plan plan = tests::plan_of(scenario);
  for (const auto& [node, cycles] :
       std::vector<std::pair<NodeId, std::int64_t>>{{0, 18}, {1, 9}, {2, 4}, {3, 17}})
    CHECK(local_steps_of_run(plan, node) == 5 * cycles);
  CHECK(plan.classes[0].reach == 3);  // site 2 trains in every third of the 12 rounds
  bool waits_long = false;
  for (std::int64_t r = 0; r < plan.rounds; ++r) {
    const RoundPlan round = plan.round(r);
    for (const Op& op : round.ops) {
      for (const EarlierOp& before : op.after_earlier) {
        waits_long = waits_long || before.rounds_back == 3;
        const RoundPlan earlier = plan.round(r - before.rounds_back);
        const Op& model = earlier.ops[static_cast<std::size_t>(before.op)];
        CHECK(model.name == "model to the worker");
        CHECK(std::get<Transfer>(model.what).exchanges[0].nodes[1] == std::get<Compute>(op.what).nodes[0]);
      }
    }
  }
  CHECK(waits_long);
}

TEST_CASE(
    "own pace: the note has the updates of the fastest and the slowest site, and of others between two") {
  const auto note = [](const std::vector<double>& factors) {
    return tests::plan_of(sites_with(factors)).notes.front();
  };
  const std::string begin =
      "async_diloco: sites train at their own pace, as their expected step and transfer times say; ";
  const std::string end = "; the server is at the first site, and its memory is not counted";
  // 18, 9, 4 and 17 cycles, as above: (48 − 18) ÷ 18 and (48 − 4) ÷ 4.
  CHECK(
      note({1, 2, 4, 1}) ==
      begin +
          "site-0 18 updates of 5 local steps, with 1.7 updates of other sites between two of them; site-2 4 "
          "updates of 5 local steps, with 11.0 updates of other sites between two of them" +
          end);
  // 24 cycles at 1/5 and 1/50 per second: 22 and 2, since the next ones would end at 115 and 150 s.
  CHECK(
      note({10, 1}) ==
      begin +
          "site-1 22 updates of 5 local steps, with 0.1 updates of other sites between two of them; site-0 2 "
          "updates of 5 local steps, with 11.0 updates of other sites between two of them" +
          end);
}

TEST_CASE("DyLU: K_w = ⌊K·v_w ÷ max v⌋, so that all cycles take about as long") {
  Scenario scenario = sites_with({1, 1.5, 3, 10});
  scenario.strategy.dynamic_local_steps = true;
  const std::vector<Pace> paces = own_paces(scenario, 1, 1);
  CHECK(paces[0].local_steps == 5);
  CHECK(paces[1].local_steps == 3);  // 3.33
  CHECK(paces[2].local_steps == 1);  // 1.67
  CHECK(paces[3].local_steps == 1);  // 0.5: at least one
  std::int64_t trained = 0;
  for (const Pace& pace : paces) trained += pace.cycles * pace.local_steps;
  CHECK(trained >= 4 * 60);
  CHECK(trained < 4 * 60 + 5);
}

TEST_CASE("own pace: equal sites keep the rounds of the barrier, and so does a bound on staleness") {
  CHECK_FALSE(paces_differ(sites_with({1, 1, 1}), 1e6, 1e6));
  CHECK(paces_differ(sites_with({1, 1, 1.01}), 1e6, 1e6));
  Scenario farther = sites_with({1, 1, 1});
  farther.platform.set_latency(0, 2, 0.1);
  CHECK(paces_differ(farther, 1e6, 1e6));
  Scenario bounded = sites_with({1, 2, 1});
  bounded.strategy.staleness = 3;
  CHECK(local_steps_of_run(tests::plan_of(bounded), 0) == 60);
}

TEST_CASE("own pace: workers that share the server's links have as many cycles as these can carry") {
  Scenario scenario = sites_with({1, 1, 1, 1.2});
  scenario.platform.sites[0].uplink_bytes_per_s = scenario.platform.sites[0].downlink_bytes_per_s = 1e6;
  // Each of three remote workers occupies the uplink for 10 s per cycle: at most one cycle in 10 s.
  const std::vector<Pace> paces = own_paces(scenario, 1e7, 1e7);
  double used = 0;
  for (std::size_t w = 1; w < 4; ++w) used += 10 / paces[w].cycle_s;
  CHECK(used == doctest::Approx(1).epsilon(1e-9));
}

TEST_CASE("own pace: a run that is shorter than K steps has cycles of the whole run") {
  Scenario scenario = sites_with({1, 2, 1, 1});
  scenario.strategy.local_steps = 500;
  scenario.workload.tokens = 10LL * 4 * scenario.model.sequence_length;  // 10 steps
  std::int64_t trained = 0;
  for (const Pace& pace : own_paces(scenario, 1, 1)) trained += pace.cycles * pace.local_steps;
  CHECK(trained == 4 * 10);
}

TEST_CASE("own pace: equal sites whose batch does not divide evenly count as equal") {
  Scenario scenario = sites_with({1, 1, 1});
  scenario.compute = AssumedDevice{1e15, 0.5, 0};
  scenario.workload.global_batch_sequences = 10;
  CHECK_FALSE(paces_differ(scenario, 1e6, 1e6));
}
