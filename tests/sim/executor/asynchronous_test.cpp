// Tests asynchronous rounds with bounded staleness, computed by hand.
#include <doctest/doctest.h>

#include <algorithm>
#include <vector>

#include "costmodel/compose/extra_traffic.hpp"
#include "costmodel/compose/make_plan.hpp"
#include "costmodel/counts/memory.hpp"
#include "costmodel/formula/closed_form.hpp"
#include "sim/executor/simulate.hpp"
#include "sim/executor/simulated_run.hpp"
#include "tests/scenarios.hpp"
#include "tests/sim/executor/simulated.hpp"
#include "tests/sim/transfers.hpp"

using namespace fomoe;

namespace {

// Three sites with links so fast that only computation takes time. A round is one step of 1 s; in round r the
// worker r mod 3 is late and takes 3 s.
costmodel::Scenario late_in_turn() {
  costmodel::Scenario scenario = tests::ideal_scenario("async_diloco", 3);
  scenario.strategy.local_steps = 1;
  scenario.platform = platforms::uniform(3, 1e18, 1e18, 0);
  return scenario;
}
double duration_s(int worker, std::int64_t round) { return round % 3 == worker ? 3 : 1; }

costmodel::Timeline play(const costmodel::Scenario& scenario, std::int64_t rounds) {
  std::vector<std::int64_t> sequence;
  for (std::int64_t r = 0; r < rounds; ++r) sequence.push_back(r);
  return sim::simulate(costmodel::make_plan(scenario), sequence, scenario.platform,
                       [](const costmodel::Compute& compute, int node, std::int64_t round, int) {
                         return compute.work == costmodel::Work::whole_step ? duration_s(node, round) : 0;
                       });
}

// The end of each round by the recurrence. A worker's pseudo-gradient of round r arrives at A(r) = T(r−1) +
// d(r), with its step time d(r). It gets its model at
//   T(r) = max(A(r), max over workers A(r − s))
std::vector<double> by_recurrence(std::int64_t rounds, std::int64_t staleness) {
  std::vector<std::vector<double>> arrived;
  std::vector<double> ready(3, 0.0), ends;
  for (std::int64_t r = 0; r < rounds; ++r) {
    arrived.emplace_back();
    for (int w = 0; w < 3; ++w)
      arrived.back().push_back(ready[static_cast<std::size_t>(w)] + duration_s(w, r));
    ready = arrived.back();
    if (r >= staleness) {
      const auto& stale = arrived[static_cast<std::size_t>(r - staleness)];
      for (double& at : ready) at = std::max(at, *std::max_element(stale.begin(), stale.end()));
    }
    ends.push_back(*std::max_element(ready.begin(), ready.end()));
  }
  return ends;
}

}  // namespace

TEST_CASE("bounded staleness: with s = 0 everybody waits for the late one, without a bound nobody does") {
  costmodel::Scenario scenario = late_in_turn();
  scenario.strategy.staleness = 0;
  CHECK(play(scenario, 6).round_end_s.back() == doctest::Approx(6 * 3.0));
  scenario.strategy.staleness.reset();
  CHECK(play(scenario, 6).round_end_s.back() ==
        doctest::Approx(2 * 3.0 + 4 * 1.0));  // each worker is late twice
  // By hand for s = 1: A = (3 1 1), (4 4 2), (5 5 6), (8 6 7), (9 9 8), (10 10 11). T = A, except for T(1) of
  // worker 2, which waits for A(0) of worker 0 and is 3.
  scenario.strategy.staleness = 1;
  CHECK(play(scenario, 6).round_end_s.back() == doctest::Approx(11.0));
  for (const std::int64_t staleness : {0, 1, 2, 3, 5}) {
    scenario.strategy.staleness = staleness;
    const std::vector<double> ends = play(scenario, 14).round_end_s, expected = by_recurrence(14, staleness);
    for (std::size_t r = 0; r < expected.size(); ++r) {
      CAPTURE(staleness);
      CAPTURE(r);
      // Each earlier transfer may take the engine's resolution of 1 ns.
      CHECK(ends[r] == doctest::Approx(expected[r]).epsilon(1e-8));
    }
  }
}

TEST_CASE("a slow site: with a bound the run ends with it, without one the others train more often") {
  costmodel::Scenario scenario = tests::ideal_scenario("async_diloco", 3);
  scenario.platform = platforms::uniform(3, 1e18, 1e18, 0);
  scenario.platform.sites[2].compute_factor = 2;
  // 60 steps take 1 s each, and 2 s each at the slow site. With a bound, the run takes 120 s, of which sites
  // compute (60 + 60 + 120) ÷ 3 s on average.
  scenario.strategy.staleness = 1;
  for (const bool every_round : {false, true}) {
    const costmodel::RunReport report =
        sim::simulate_scenario(scenario, {.rounds = {}, .all_rounds = every_round}).report;
    CHECK(report.wall_clock_s == doctest::Approx(120).epsilon(1e-9));
    CHECK(report.compute_utilization == doctest::Approx(2.0 / 3).epsilon(1e-9));
  }
  // Without a bound, 36 cycles of 5 steps take 36 ÷ (1/5 + 1/5 + 1/10) = 72 s: rates add up. All sites
  // compute all the time.
  scenario.strategy.staleness.reset();
  const costmodel::RunReport own =
      sim::simulate_scenario(scenario, {.rounds = {}, .all_rounds = true}).report;
  CHECK(own.wall_clock_s == doctest::Approx(72).epsilon(1e-9));
  CHECK(own.compute_utilization == doctest::Approx(1).epsilon(1e-9));
}

TEST_CASE("own pace with transfers: rounds ÷ Σ 1/(K·t_w + t_up + t_down), whichever site is slow") {
  for (const std::size_t slow : {1UL, 3UL}) {
    costmodel::Scenario scenario = tests::ideal_scenario("async_diloco", 4);
    scenario.workload.tokens *= 20;  // 1200 steps, 960 cycles
    const double payload = 2.0 * static_cast<double>(costmodel::count_parameters(scenario.model).total());
    // An upload takes 0.5 s + 20 ms; the server's links carry all of them, so nobody waits for another one.
    scenario.platform = platforms::uniform(4, 2 * payload, 2 * payload, 0.020);
    scenario.platform.sites[0].uplink_bytes_per_s = scenario.platform.sites[0].downlink_bytes_per_s = 1e18;
    scenario.platform.sites[slow].compute_factor = 2.5;
    double rate = 1.0 / 5;  // the server's own site
    for (std::size_t site = 1; site < 4; ++site) rate += 1 / (5 * (site == slow ? 2.5 : 1) + 2 * 0.520);
    const costmodel::RunReport report =
        sim::simulate_scenario(scenario, {.rounds = {}, .all_rounds = true}).report;
    CHECK(report.wall_clock_s == doctest::Approx(4 * 1200 / 5.0 / rate).epsilon(1e-6));
    // A sample of the rounds says the same.
    CHECK(sim::simulate_scenario(scenario).report.wall_clock_s ==
          doctest::Approx(report.wall_clock_s).epsilon(1e-6));
  }
}

TEST_CASE("steps that vary: asynchronous rounds take less time than a barrier, and no less than the mean") {
  costmodel::Scenario scenario = late_in_turn();
  scenario.strategy.local_steps = 5;
  scenario.workload.tokens *= 40;  // 2400 steps in 480 rounds
  scenario.variation = {};
  scenario.variation.straggler_share = 0.05;
  scenario.variation.straggler_factor = 10;
  const auto wall_clock_s = [&](std::optional<std::int64_t> staleness) {
    scenario.strategy.staleness = staleness;
    return sim::simulate_scenario(scenario, {.rounds = {}, .all_rounds = true}).report.wall_clock_s;
  };
  const double barrier = wall_clock_s(0), one = wall_clock_s(1), many = wall_clock_s(20),
               none = wall_clock_s({});
  CHECK(barrier > 1.1 * one);
  CHECK(one > many);
  CHECK(many >= none);
  CHECK(none > 480 * 5.0);  // every site's mean step takes at least 1 s
}

TEST_CASE("fragments at own pace: hidden transfers cost nothing, and slow links are used fully") {
  costmodel::Scenario scenario = tests::ideal_scenario("decoupled_diloco", 4);
  scenario.strategy.local_steps = 4;
  scenario.workload.tokens *= 10;
  const double payload = 2.0 * static_cast<double>(costmodel::count_parameters(scenario.model).total());
  for (const int fragments : {2, 4}) {
    scenario.strategy.fragments = fragments;
    const auto compare = [&](double rate, double epsilon) {
      CAPTURE(fragments);
      CAPTURE(rate);
      scenario.platform = platforms::uniform(4, rate, rate, 0.1);
      const costmodel::RunReport simulated = sim::simulate_scenario(scenario).report;
      CHECK(costmodel::closed_form(scenario).wall_clock_s ==
            doctest::Approx(simulated.wall_clock_s).epsilon(epsilon / 2));
      return simulated;
    };
    CHECK(compare(payload * 4, 1e-12).wall_clock_s == doctest::Approx(600).epsilon(1e-12));
    // Three sites need 3·S each way in a cycle of all fragments. The first fragments wait for none before.
    const costmodel::RunReport slow = compare(payload / 10, 0.02);
    const double used = slow.sites[0].bytes_received / slow.wall_clock_s / (payload / 10);
    CHECK(used > 0.9);
    CHECK(used < 1.01);  // the first ones meet nobody
  }
}

TEST_CASE(
    "fragments at own pace: a whole short run sends the last ones too, which are back after its last steps") {
  costmodel::Scenario scenario = tests::ideal_scenario("decoupled_diloco", 2);
  scenario.strategy.local_steps = 4;
  scenario.strategy.fragments = 4;
  const double payload = 2.0 * static_cast<double>(costmodel::count_parameters(scenario.model).total());
  for (const double share : {0.1, 0.5, 1.0, 5.0}) {
    CAPTURE(share);
    scenario.platform = platforms::uniform(2, share * payload, share * payload, 0.1);
    const costmodel::RunReport report = tests::simulated(scenario), closed = costmodel::closed_form(scenario);
    // Each fragment that a worker sends comes back.
    CHECK(report.sites[0].bytes_sent == doctest::Approx(report.sites[1].bytes_sent).epsilon(1e-9));
    // The closed form lets the first fragments wait for earlier ones, which makes its run longer.
    CHECK(report.sites[0].bytes_sent == doctest::Approx(closed.sites[0].bytes_sent).epsilon(0.04));
  }
}

TEST_CASE("own pace: a link of the server is never used more than fully, in short runs as in long ones") {
  for (const char* method : {"async_diloco", "decoupled_diloco"}) {
    for (const double step_s : {0.01, 0.1, 1.0}) {
      CAPTURE(method);
      CAPTURE(step_s);
      costmodel::Scenario scenario = tests::ideal_scenario(method, 4);
      scenario.platform = platforms::uniform(4, 12.5e6, 12.5e6, 0.01);
      scenario.compute = costmodel::GivenStepTime{step_s};
      const costmodel::RunReport report = tests::simulated(scenario);
      CHECK(report.bottleneck.link_busy_share > 0);
      CHECK(report.bottleneck.link_busy_share < 1.001);
    }
  }
}

TEST_CASE(
    "own pace with data and checkpoints: they are no cycles of the workers, and are counted once a round") {
  for (const char* method : {"async_diloco", "decoupled_diloco"}) {
    CAPTURE(method);
    costmodel::Scenario scenario = tests::ideal_scenario(method, 4);
    scenario.platform = platforms::uniform(4, 1e15, 1e15, 0);
    const costmodel::RunReport alone = tests::simulated(scenario);
    scenario.traffic.data_site = 0;
    scenario.traffic.data_bytes_per_token = 4;
    scenario.traffic.checkpoint_site = 1;
    scenario.traffic.checkpoint_rounds = 1;
    const costmodel::RunReport both = tests::simulated(scenario);
    const double state_bytes = costmodel::state_bytes_per_site(scenario);
    const double rounds = static_cast<double>(both.round.count);
    const double read = 4.0 * static_cast<double>(scenario.workload.tokens) / 4;
    CHECK(both.sites[3].bytes_sent - alone.sites[3].bytes_sent ==
          doctest::Approx(rounds * state_bytes).epsilon(1e-3));
    CHECK(both.sites[0].bytes_sent - alone.sites[0].bytes_sent ==
          doctest::Approx(rounds * state_bytes + 3 * read).epsilon(1e-3));
  }
}
