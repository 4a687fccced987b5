// Tests of asynchronous DiLoCo: the bytes of each cycle, and which operations wait for each other with a
// bound on staleness.
#include <doctest/doctest.h>

#include "costmodel/formula/closed_form.hpp"
#include "costmodel/plan/method.hpp"
#include "tests/plan_bytes.hpp"
#include "tests/scenarios.hpp"

using namespace fomoe;
using namespace fomoe::costmodel;

TEST_CASE("async_diloco: every cycle of a remote worker sends a pseudo-gradient and receives a model") {
  const int sites = 4;
  const Scenario scenario = tests::ideal_scenario("async_diloco", sites);
  const Plan plan = tests::plan_of(scenario);
  const double payload = 2.0 * static_cast<double>(count_parameters(scenario.model).total());  // bf16
  REQUIRE(plan.nodes.size() == 5);
  CHECK(plan.nodes[4].kind == NodeKind::server);
  std::int64_t cycles = 0, remote = 0;
  double sent = 0;
  for (std::int64_t r = 0; r < plan.rounds; ++r) {
    for (const Op& op : plan.round(r).ops) {
      const auto* compute = std::get_if<Compute>(&op.what);
      if (compute == nullptr || compute->work != Work::whole_step) continue;
      ++cycles;
      remote += compute->nodes.front() > 0;
    }
    sent += sites * tests::sent_in_round(plan, sites, r).total();
  }
  CHECK(cycles * scenario.strategy.local_steps >= sites * 60);  // all sequences of 60 steps
  CHECK(remote < 3 * cycles / 4);  // the server's own site sends nothing, and is ahead
  CHECK(sent == doctest::Approx(2 * payload * static_cast<double>(remote)).epsilon(1e-14));
}

TEST_CASE("async_diloco: the closed form has the rates of the sites' cycles, and their bytes") {
  Scenario scenario = tests::ideal_scenario("async_diloco", 2);  // steps of 1 s, K = 5, 60 steps
  const double payload = 2.0 * static_cast<double>(count_parameters(scenario.model).total());
  scenario.platform = platforms::uniform(2, payload / 4, payload / 4, 0.5);
  // One remote worker never meets another one: 5 + 2·(0.5 + 4) s.
  const RunReport report = closed_form(scenario);
  const double run_s = 2 * 60 / (5 / 5.0 + 5 / 14.0);
  CHECK(report.wall_clock_s == doctest::Approx(run_s).epsilon(1e-12));
  CHECK(report.sites[0].compute_s * 12 == doctest::Approx(run_s).epsilon(1e-12));
  CHECK(report.sites[1].exposed_communication_s * 12 == doctest::Approx(run_s * 9 / 14).epsilon(1e-12));
  CHECK(report.sites[1].bytes_sent == doctest::Approx(run_s / 14 * payload).epsilon(1e-12));
  CHECK(report.sites[0].bytes_received == report.sites[1].bytes_sent);
}

TEST_CASE(
    "async_diloco: local steps wait for the previous round's model, and the model waits for stale rounds") {
  Scenario scenario = tests::ideal_scenario("async_diloco", 3);
  scenario.strategy.staleness = 1;
  // The operations are local steps, then each worker's send and outer step, then the model to each worker.
  const auto down = [&](int worker) {
    return tests::plan_of(scenario).round(4).ops[static_cast<std::size_t>(7 + worker)];
  };
  CHECK(tests::plan_of(scenario).round(4).ops[0].after_earlier ==
        std::vector<EarlierOp>{{7, 1}, {8, 1}, {9, 1}});
  CHECK(tests::plan_of(scenario).classes[0].reach == 1);
  scenario.strategy.staleness = 2;
  CHECK(down(1).after_earlier == std::vector<EarlierOp>{{1, 2}, {5, 2}});  // of workers 0 and 2
  CHECK(tests::plan_of(scenario).classes[0].reach == 2);
  scenario.strategy.staleness = 0;
  CHECK(down(1).after_earlier.empty());
  CHECK(down(1).after == std::vector<OpId>{4, 1, 5});     // in the same round
  CHECK(tests::plan_of(scenario).classes[0].reach == 1);  // local steps still wait for the round before
}
