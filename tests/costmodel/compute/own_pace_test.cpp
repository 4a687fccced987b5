// Tests of workers that train at their own pace.
#include "costmodel/compute/own_pace.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <random>
#include <string>
#include <utility>
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

// The paces if sites send next to nothing.
std::vector<Pace> paces_of(const Scenario& scenario) {
  return own_paces(scenario, std::pair{1.0, 1.0}).sites;
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
  const std::vector<Pace> paces = paces_of(sites_with({1, 2, 4, 1}));
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
  const std::vector<Pace> paces = paces_of(scenario);
  CHECK(paces[0].local_steps == 5);
  CHECK(paces[1].local_steps == 3);  // 3.33
  CHECK(paces[2].local_steps == 1);  // 1.67
  CHECK(paces[3].local_steps == 1);  // 0.5: at least one
  std::int64_t trained = 0;
  for (const Pace& pace : paces) trained += pace.cycles * pace.local_steps;
  CHECK(trained >= 4 * 60);
  CHECK(trained < 4 * 60 + 5);
}

TEST_CASE("own pace: a bound on staleness keeps the rounds of the barrier") {
  Scenario bounded = sites_with({1, 2, 1});
  bounded.strategy.staleness = 3;
  CHECK(local_steps_of_run(tests::plan_of(bounded), 0) == 60);
}

TEST_CASE("own pace: equal workers have what the others leave of the server's links, by hand") {
  Scenario scenario = sites_with({1, 1, 1, 1});
  scenario.platform = platforms::uniform(4, 1e6, 1e6, 0);
  // D = 16 s for an upload or a download alone; K·t = 5 s. c = 5 + 2·16 ÷ (1 − 2·16 ÷ c):
  // c² − (5 + 64)·c + 160 = 0.
  const OwnPaces paces = own_paces(scenario, std::pair{16e6, 16e6});
  const double cycle_s = (69 + std::sqrt(69.0 * 69 - 4 * 160)) / 2;
  CHECK(paces.sites[0].cycle_s == doctest::Approx(5).epsilon(1e-12));
  for (std::size_t w = 1; w < 4; ++w) CHECK(paces.sites[w].cycle_s == doctest::Approx(cycle_s).epsilon(1e-9));
  CHECK(paces.run_s == doctest::Approx(48 / (1 / 5.0 + 3 / cycle_s)).epsilon(1e-9));  // 4 · 60 ÷ 5 cycles
}

TEST_CASE("own pace: no link is used more than fully, also by very many workers") {
  for (const int sites : {2, 5, 40, 300}) {
    CAPTURE(sites);
    Scenario scenario = tests::ideal_scenario("async_diloco", sites);
    scenario.workload.global_batch_sequences = sites;
    scenario.platform = platforms::uniform(sites, 1e6, 1e6, 0);
    const OwnPaces paces = own_paces(scenario, std::pair{1e7, 1e7});
    double used = 0;
    for (std::size_t w = 1; w < paces.sites.size(); ++w) used += 10 / paces.sites[w].cycle_s;
    CHECK(used < 1);
    if (sites >= 40) CHECK(used > 0.9);
  }
}

TEST_CASE("own pace: no rate that rises and no latency that falls makes a run longer, and nothing jumps") {
  std::mt19937_64 random(20261127);
  const auto between = [&](double low, double high) {
    return low * std::pow(high / low, std::uniform_real_distribution<double>(0, 1)(random));
  };
  for (int trial = 0; trial < 24; ++trial) {
    CAPTURE(trial);
    const int sites = 2 + trial % 5;
    Scenario scenario = tests::ideal_scenario("async_diloco", sites);
    scenario.platform = platforms::uniform(sites, 1e6, 1e6, 0.01);
    for (platforms::Site& site : scenario.platform.sites) {
      site.uplink_bytes_per_s = between(1e5, 1e7);
      site.downlink_bytes_per_s = between(1e5, 1e7);
      site.compute_factor = between(0.2, 5);
    }
    const auto run_s = [&] { return own_paces(scenario, std::pair{4e6, 4e6}).run_s; };
    platforms::Site& site = scenario.platform.sites[static_cast<std::size_t>(trial % sites)];
    double* const changed[] = {&site.uplink_bytes_per_s, &site.downlink_bytes_per_s};
    double& rate = *changed[trial % 2];
    double before_s = 0;
    for (rate = 3e4; rate < 3e7; rate *= 1.15) {
      const double now_s = run_s();
      if (before_s > 0) {
        CHECK(now_s <= before_s * (1 + 1e-9));
        CHECK(now_s >= before_s / 1.15);
      }
      before_s = now_s;
    }
    if (sites == 2) continue;
    const double near_s = run_s();
    scenario.platform.set_latency(0, 1, 5);
    CHECK(run_s() >= near_s);
  }
}

TEST_CASE("own pace: a run that is shorter than K steps has cycles of the whole run") {
  Scenario scenario = sites_with({1, 2, 1, 1});
  scenario.strategy.local_steps = 500;
  scenario.workload.tokens = 10LL * 4 * scenario.model.sequence_length;  // 10 steps
  std::int64_t trained = 0;
  for (const Pace& pace : paces_of(scenario)) trained += pace.cycles * pace.local_steps;
  CHECK(trained == 4 * 10);
}
