// Tests the results of a simulation besides times, computed by hand: the critical path, the achieved overlap,
// the link usage and the confidence interval of a sample.
#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <cmath>
#include <numeric>

#include "costmodel/plan/method.hpp"
#include "costmodel/timeline/link_usage.hpp"
#include "sim/executor/simulated_run.hpp"
#include "tests/scenarios.hpp"

using namespace fomoe;
using costmodel::CriticalStep;
using costmodel::Scenario;

TEST_CASE(
    "critical path: the slow site's steps, then the transfer that waits for it; it adds up to the round") {
  Scenario scenario = tests::ideal_scenario("diloco", 4);
  scenario.platform.sites[2].compute_factor = 1.5;
  const auto run = sim::simulate_scenario(scenario);
  const std::vector<CriticalStep>& path = run.report.critical_path;
  REQUIRE(path.size() == 2);
  CHECK(path[0].what == "local steps");
  CHECK(path[0].site == "site-2");
  CHECK(path[0].seconds == doctest::Approx(5 * 1.5));
  CHECK(path[0].activity == costmodel::Activity::compute);
  CHECK(path[1].activity == costmodel::Activity::transfer);
  double sum = 0;
  for (const CriticalStep& step : path) sum += step.seconds;
  CHECK(sum == doctest::Approx(run.report.round.duration_s).epsilon(1e-9));
  // The three other sites wait 2.5 s per round, during which no link is busy.
  CHECK(run.report.sites[0].idle_s == doctest::Approx(2.5).epsilon(1e-6));
}

TEST_CASE("overlap achieved: never more than compute can hide") {
  const bool ok = rc::check([] {
    const std::vector<std::string> names = {"diloco", "streaming_diloco", "diloco_x", "ddp", "fomoe"};
    Scenario scenario = tests::every_axis_scenario(*rc::gen::elementOf(names), *rc::gen::inRange(2, 6));
    const double rate = std::pow(10.0, *rc::gen::inRange(80, 120) / 10.0);
    scenario.platform = platforms::uniform(scenario.sites(), rate, rate, *rc::gen::inRange(0, 50) / 1000.0);
    const costmodel::MeanRound round = sim::simulate_scenario(scenario).report.round;
    RC_ASSERT(round.overlap_achieved >= 0);
    RC_ASSERT(round.overlap_achieved <=
              std::min(1.0, round.compute_s / round.transferring_s) * (1 + 1e-6) + 1e-6);
  });
  CHECK(ok);
}

TEST_CASE("overlap achieved: none without overlap, all of it on a fast network") {
  CHECK(sim::simulate_scenario(tests::ideal_scenario("diloco", 4)).report.round.overlap_achieved ==
        doctest::Approx(0).epsilon(1e-9));
  Scenario scenario = tests::every_axis_scenario("diloco_x", 4);
  scenario.platform = platforms::uniform(4, 1e13, 1e13, 0);
  CHECK(sim::simulate_scenario(scenario).report.round.overlap_achieved >
        0.85);  // all rounds but the last of ten
}

TEST_CASE(
    "links over time: what a link carried in all bins is what the site sent; never more than its rate") {
  Scenario scenario = tests::ideal_scenario("local_sgd", 4);
  scenario.platform = platforms::uniform(4, 1e9, 5e8, 0.001);
  sim::RunOptions options;
  options.record_flows = true;
  const auto run = sim::simulate_scenario(scenario, options);
  const auto usage = costmodel::link_usage(run.plan, scenario.platform, run.timeline, 100);
  const double bin_s = run.timeline.round_end_s.back() / 100;
  int uplinks = 0;
  for (const costmodel::LinkUsage& link : usage) {
    for (const double rate : link.bytes_per_s) CHECK(rate <= link.capacity_bytes_per_s * (1 + 1e-9));
    if (link.link.rfind("uplink", 0) != 0) continue;
    ++uplinks;
    const double sum = std::accumulate(link.bytes_per_s.begin(), link.bytes_per_s.end(), 0.0) * bin_s;
    const auto rounds = static_cast<double>(run.timeline.rounds.size());
    CHECK(sum == doctest::Approx(run.report.bytes_sent_per_site_per_round * rounds).epsilon(1e-9));
  }
  CHECK(uplinks == 4);
  // In a ring every site sends to one other site.
  CHECK(usage.size() == 4 + 4 + 4);
}

TEST_CASE("steps that vary: rounds are a sample, and the interval holds what all rounds give") {
  Scenario scenario = tests::ideal_scenario("diloco", 4);
  scenario.workload.tokens = 500LL * 4 * 10;  // 100 rounds of 5
  scenario.variation.coefficient = 0.2;
  const auto sample = sim::simulate_scenario(scenario, {.rounds = 8}).report;
  REQUIRE(sample.wall_clock_interval_s.has_value());
  const auto all = sim::simulate_scenario(scenario, {.rounds = {}, .all_rounds = true}).report;
  CHECK_FALSE(all.wall_clock_interval_s.has_value());
  CHECK(all.wall_clock_s > sample.wall_clock_interval_s->low);
  CHECK(all.wall_clock_s < sample.wall_clock_interval_s->high);
  CHECK(sample.wall_clock_interval_s->high - sample.wall_clock_interval_s->low < 0.2 * sample.wall_clock_s);
  // Sites wait for the slowest site of each round, so a run takes longer than the mean steps plus the
  // transfers.
  Scenario steady = scenario;
  steady.variation = {};
  CHECK(all.wall_clock_s > sim::simulate_scenario(steady).report.wall_clock_s * 1.01);
  CHECK(all.compute_utilization < sim::simulate_scenario(steady).report.compute_utilization);
}

TEST_CASE("tensor by tensor: every tensor pays the latencies of a ring of its own") {
  Scenario scenario = tests::ideal_scenario("local_sgd", 4);
  const double latency_s = 0.010;
  scenario.platform = platforms::uniform(4, 1e9, 1e9, latency_s);
  const double flat_s = sim::simulate_scenario(scenario).report.wall_clock_s;
  scenario.strategy.granularity = costmodel::Granularity::tensor;
  const auto run = sim::simulate_scenario(scenario);
  // The tensors are 1 embedding table, 2 layers, and 1 for the norms outside of layers. A layer has 4
  // projections, 4 norms, and for each of 8 experts a router column and 2 matrices. Each tensor costs 2(M −
  // 1) = 6 latencies in each of 12 rounds. All tensors divide into equal chunks, so the bytes take the same
  // time as in one piece.
  const double tensors = 1 + 2 * (4 + 4 + 8 * (1 + 2)) + 1;
  CHECK(run.report.wall_clock_s - flat_s ==
        doctest::Approx(12 * 6 * latency_s * (tensors - 1)).epsilon(1e-6));
}
