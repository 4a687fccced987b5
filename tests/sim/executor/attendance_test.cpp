// Tests rounds that go on without slow or stopped sites, with times that are computed by hand.
#include <doctest/doctest.h>

#include <cmath>

#include "costmodel/compose/extra_traffic.hpp"
#include "costmodel/counts/memory.hpp"
#include "costmodel/methods/all.hpp"
#include "platforms/support/input_error.hpp"
#include "sim/executor/simulated_run.hpp"
#include "tests/scenarios.hpp"
#include "tests/sim/executor/simulated.hpp"

using namespace fomoe;
using costmodel::Collective;
using costmodel::FailurePolicy;
using costmodel::RunReport;
using costmodel::Scenario;
using doctest::Approx;
using tests::simulated;

namespace {

constexpr double kSteps_s = 5;        // the local steps of a round
constexpr double kTogether_s = 1e-6;  // nodes that are ready within this time are ready together
constexpr double kExact = 1e-9;

/// Four sites; 12 rounds of 5 steps of 1 s.
Scenario four_sites(double bytes_per_s, const std::string& method = "diloco") {
  Scenario scenario = tests::ideal_scenario(method, 4);
  scenario.strategy.collective = Collective::direct;
  scenario.platform = platforms::uniform(4, bytes_per_s, bytes_per_s, 0.0);
  return scenario;
}

/// The seconds in which n sites average their bf16 pseudo-gradients: 2(n−1)/n · S/B.
double average_s(const Scenario& scenario, double n) {
  const double bytes = 2.0 * static_cast<double>(costmodel::count_parameters(scenario.model).total());
  return 2 * (n - 1) / n * bytes / scenario.platform.sites[0].uplink_bytes_per_s;
}

double state_bytes(const Scenario& scenario) { return costmodel::state_bytes_per_site(scenario); }
double fetch_s(const Scenario& scenario) {
  return state_bytes(scenario) / scenario.platform.sites[0].uplink_bytes_per_s;
}

Scenario with_outage(Scenario scenario, int site, double start_s, double duration_s, FailurePolicy policy) {
  costmodel::Failures failures;
  failures.policy = policy;
  failures.checkpoint_s = 1;
  failures.outages = {{site, start_s, duration_s}};
  scenario.failures = failures;
  return scenario;
}

}  // namespace

TEST_CASE(
    "with a quorum, a round takes as long as without the slow site, which fetches the state and is late "
    "again") {
  Scenario scenario = four_sites(1e11);
  // It computes for 12.5 s. Its transfer then falls into the others' steps, so it delays no synchronisation.
  scenario.platform.sites[3].compute_factor = 2.5;
  scenario.strategy.quorum = 3;
  const RunReport report = simulated(scenario);
  // Three of four sites train a quarter less in each round, so 12 rounds become 16. It begins the rounds 0,
  // 3, 6, 9, 12 and 15, and fetches the state after each of them but the last.
  const double round_s = kSteps_s + average_s(scenario, 3);
  CHECK(report.wall_clock_s == Approx(16 * round_s + 6 * kTogether_s).epsilon(kExact));
  REQUIRE(report.attendance);
  CHECK(report.attendance->missed_rounds == std::vector<double>{0, 0, 0, 16});
  CHECK(report.attendance->trained_share == Approx(0.75));
  CHECK(report.attendance->added_rounds == 4);
  CHECK(report.tokens == scenario.workload.tokens);
  CHECK(report.sites[3].bytes_received == Approx(5 * state_bytes(scenario)));
  CHECK(report.sites[3].bytes_sent == 0);
  CHECK(report.sites[3].compute_s * 16 == Approx(5 * 12.5 + round_s));
}

TEST_CASE("a site that still receives while the others finish later rounds is late, and the run ends") {
  // The last chunks of a ring reach the sites at different times. The steps take next to nothing, so the
  // first site to have its average is alone in the next rounds, and finishes them before the others have left
  // this one.
  for (const std::string method : {"diloco", "local_sgd", "des_loc"}) {
    CAPTURE(method);
    Scenario scenario = tests::ideal_scenario(method, 3);
    scenario.compute = costmodel::GivenStepTime{1e-6};
    scenario.platform.sites[2].downlink_bytes_per_s = 1e8;
    scenario.platform.set_latency(0, 1, 0.02);
    scenario.platform.set_latency(1, 2, 0.05);
    scenario.strategy.quorum = 1;
    const RunReport report = simulated(scenario);
    REQUIRE(report.attendance);
    const auto count = static_cast<double>(report.round.count);
    CHECK(count == 12 + static_cast<double>(report.attendance->added_rounds));
    CHECK(report.tokens >= scenario.workload.tokens);
    double missed = 0;
    for (const double rounds : report.attendance->missed_rounds) {
      CHECK(rounds <= count);
      missed += rounds;
    }
    CHECK(missed > 0);
  }
}

TEST_CASE("the quorum waits for slow sites up to the time-out") {
  Scenario scenario = four_sites(1e11);
  scenario.platform.sites[3].compute_factor = 1.5;  // 7.5 s
  scenario.strategy.quorum = 2;
  const double all_s = 12 * (7.5 + average_s(scenario, 4));
  SUBCASE("long enough") {
    scenario.strategy.straggler_timeout_s = 2.6;
    const RunReport report = simulated(scenario);
    CHECK(report.wall_clock_s == Approx(all_s).epsilon(kExact));
    CHECK(report.attendance->trained_share == 1);
  }
  SUBCASE("too short: the first round begins to average after the time-out") {
    scenario.strategy.straggler_timeout_s = 2.4;
    const RunReport report = simulated(scenario);
    CHECK(report.round_durations_s[0] == Approx(kSteps_s + 2.4 + average_s(scenario, 3)).epsilon(kExact));
    CHECK(report.attendance->added_rounds > 0);  // so that the run is not shorter
    CHECK(report.wall_clock_s > all_s);
  }
}

TEST_CASE("a server's own site ends rounds before the others: a round ends no earlier than the one before") {
  Scenario scenario = four_sites(12.5e6, "fedavg");
  scenario.strategy.quorum = 1;
  const RunReport report = simulated(scenario);
  REQUIRE(!report.round_durations_s.empty());
  double sum_s = 0;
  for (const double seconds : report.round_durations_s) {
    CHECK(seconds >= 0);
    sum_s += seconds;
  }
  CHECK(sum_s == Approx(report.wall_clock_s));
}

TEST_CASE("a quorum changes nothing if no site is slow, for every method that has one") {
  int tried = 0;
  for (const costmodel::Method& method : costmodel::methods()) {
    if (!costmodel::has_axis(method, "quorum")) continue;
    CAPTURE(method.name);
    Scenario scenario = tests::ideal_scenario(method.name, 4);
    if (method.usual_wire) scenario.strategy.wire = *method.usual_wire;
    const double all_s = simulated(scenario).wall_clock_s;
    scenario.strategy.quorum = 2;
    const RunReport report = simulated(scenario);
    CHECK(report.wall_clock_s == Approx(all_s).epsilon(kExact));
    CHECK(report.attendance->trained_share == 1);
    ++tried;
  }
  CHECK(tried == 10);
}

TEST_CASE(
    "drop: the others wait for the time-out, go on without the site, and it comes back with a new round") {
  Scenario scenario = with_outage(four_sites(1e11), 2, 7, 9, FailurePolicy::drop);
  scenario.failures->timeout_s = 2;
  const RunReport report = simulated(scenario);
  // It stops in round 1. Round 2 goes on without it and without waiting. It is back after 16 s, during
  // round 2. Two rounds of one of four sites are lost: 2.5 steps of all sites, for which a round of 3 steps
  // is added.
  CHECK(report.wall_clock_s ==
        Approx(12 * kSteps_s + 3 + 2 + 11 * average_s(scenario, 4) + 2 * average_s(scenario, 3))
            .epsilon(kExact));
  CHECK(report.attendance->missed_rounds == std::vector<double>{0, 0, 2, 0});
  CHECK(report.attendance->trained_share == Approx(1 - 2 * 5 / (4 * 63.0)));
  CHECK(report.attendance->added_rounds == 1);
  CHECK(static_cast<double>(report.tokens) ==
        Approx(60.5 / 60 * static_cast<double>(scenario.workload.tokens)).epsilon(1e-6));
  CHECK(report.round_durations_s[1] == Approx(kSteps_s + 2 + average_s(scenario, 3)).epsilon(kExact));
}

TEST_CASE("drop: a failure interrupts a synchronisation, which begins again without the site") {
  Scenario scenario = with_outage(four_sites(1e9), 2, 5.5, 3, FailurePolicy::drop);
  scenario.failures->timeout_s = 1;
  REQUIRE(average_s(scenario, 4) > 0.6);  // it is under way at 5.5 s
  const RunReport report = simulated(scenario);
  CHECK(report.round_durations_s[0] == Approx(5.5 + 1 + average_s(scenario, 3)).epsilon(kExact));
  CHECK(report.attendance->missed_rounds[2] >= 2);
}

TEST_CASE("drop: the flows of an interrupted synchronisation no longer use the links") {
  Scenario scenario = with_outage(four_sites(1e9), 2, 5.1, 30, FailurePolicy::drop);
  scenario.failures->timeout_s = 0.1;  // they would still be under way
  CHECK(simulated(scenario).round_durations_s[0] ==
        Approx(5.1 + 0.1 + average_s(scenario, 3)).epsilon(kExact));
}

TEST_CASE("drop: a site that is back and computes again is waited for, whatever the time-out") {
  Scenario scenario = with_outage(four_sites(1e11), 2, 2, 4, FailurePolicy::drop);
  scenario.failures->timeout_s = 2;  // from 5 s on; the site is back after 6 s
  CHECK(simulated(scenario).round_durations_s[0] ==
        Approx(6 + fetch_s(scenario) + kSteps_s + average_s(scenario, 4)).epsilon(kExact));
}

TEST_CASE("a time-out that began before an interruption is void") {
  Scenario scenario = with_outage(four_sites(1e9), 2, 6.5, 30, FailurePolicy::drop);
  scenario.failures->timeout_s = 10;
  scenario.platform.sites[3].compute_factor = 1.2;  // 6 s
  scenario.strategy.quorum = 2;
  scenario.strategy.straggler_timeout_s = 5;  // from 5 s on, and, after the interruption, from 6.5 s on
  CHECK(simulated(scenario).round_durations_s[0] == Approx(6.5 + 5 + average_s(scenario, 3)).epsilon(kExact));
}

TEST_CASE("drop: a site that is back before the time-out does its part of the round again") {
  Scenario scenario = with_outage(four_sites(1e11), 2, 2, 1, FailurePolicy::drop);
  scenario.failures->timeout_s = 100;
  const RunReport report = simulated(scenario);
  CHECK(report.round_durations_s[0] ==
        Approx(3 + fetch_s(scenario) + kSteps_s + average_s(scenario, 4)).epsilon(kExact));
  CHECK(report.wall_clock_s ==
        Approx(3 + fetch_s(scenario) + 12 * (kSteps_s + average_s(scenario, 4))).epsilon(kExact));
  CHECK(report.attendance->trained_share == 1);
}

TEST_CASE("wait: all go back to the last checkpoint, which the site that is back reads from its storage") {
  const Scenario plain = four_sites(1e11);
  const double round_s = kSteps_s + average_s(plain, 4);
  struct Case {
    double start_s, repeated;
  };
  // A checkpoint of 1 s follows every second round but the last. Rounds 2 and 3 begin at about 11 and 16 s.
  for (const Case& one : {Case{12, 0}, Case{17, 1}}) {
    CAPTURE(one.start_s);
    Scenario scenario = with_outage(plain, 1, one.start_s, 20, FailurePolicy::wait);
    scenario.failures->checkpoint_rounds = 2;
    const RunReport report = simulated(scenario);
    CHECK(report.wall_clock_s == Approx(one.start_s + 20 + 1 + 10 * round_s + 4 * 1).epsilon(kExact));
    CHECK(report.attendance->repeated_rounds == one.repeated);
    CHECK(report.attendance->trained_share == 1);
    // It reads at the rate of its storage, if that is known.
    scenario.failures->storage_bytes_per_s = state_bytes(scenario) / 7;
    CHECK(simulated(scenario).wall_clock_s == Approx(report.wall_clock_s + 6).epsilon(kExact));
  }
}

TEST_CASE("wait: the repeated rounds of several failures add up") {
  const Scenario plain = four_sites(1e11);
  const double round_s = kSteps_s + average_s(plain, 4);
  Scenario scenario = with_outage(plain, 1, 17, 20, FailurePolicy::wait);
  scenario.failures->checkpoint_rounds = 2;
  // Rounds 2 and 3 begin again after 37 s and 1 s of reading, and fail once more in round 3.
  const double again_s = 37 + 1 + round_s + 2;
  scenario.failures->outages.push_back({2, again_s, 10});
  const RunReport report = simulated(scenario);
  CHECK(report.attendance->repeated_rounds == 2);
  CHECK(report.wall_clock_s == Approx(again_s + 10 + 1 + 10 * round_s + 4 * 1).epsilon(kExact));
}

TEST_CASE(
    "several outages, quorum and stragglers at once: the run ends, and bytes and shares stay in bounds") {
  for (std::uint64_t seed = 0; seed < 6; ++seed) {
    CAPTURE(seed);
    Scenario scenario = four_sites(1e9, seed % 2 == 0 ? "local_adamw" : "ddp");
    if (seed % 2 == 1) scenario.workload.tokens /= 2;  // 30 rounds
    scenario.model.d_model /= 4;  // windows of a smaller payload take less time to simulate
    scenario.platform = platforms::uniform(4, 1e9 / 16, 2e9 / 16, 0.03);
    scenario.network.initial_window_bytes = 14480;
    scenario.network.jitter_s = 0.01;
    scenario.variation.coefficient = 0.3;
    scenario.seed = seed;
    scenario.strategy.quorum = 2;
    scenario.strategy.straggler_timeout_s = 0.1 * static_cast<double>(seed);
    scenario = with_outage(scenario, 1, 6.2 + static_cast<double>(seed), 11, FailurePolicy::drop);
    scenario.failures->timeout_s = 0.5;
    scenario.failures->outages.push_back({3, 9, 4 + static_cast<double>(seed)});
    scenario.failures->outages.push_back({3, 30, 5});
    const RunReport report = simulated(scenario);
    CHECK(std::isfinite(report.wall_clock_s));
    CHECK(report.attendance->trained_share > 0.2);
    CHECK(report.attendance->trained_share < 1);
    for (const auto& site : report.sites)
      CHECK(site.compute_s + site.exposed_communication_s + site.idle_s ==
            Approx(report.round.duration_s).epsilon(1e-6));
    CHECK(simulated(scenario).wall_clock_s == report.wall_clock_s);
    CHECK(report.tokens >= scenario.workload.tokens);
  }
}

TEST_CASE("drop: a site that is away for ever makes a run longer, never shorter or cheaper") {
  const double all_s = simulated(four_sites(1e11)).wall_clock_s;
  double before_s = all_s;
  for (const double away_s : {20.0, 60.0, 1e9}) {
    CAPTURE(away_s);
    Scenario scenario = with_outage(four_sites(1e11), 2, 7, away_s, FailurePolicy::drop);
    scenario.failures->timeout_s = 2;
    const RunReport report = simulated(scenario);
    CHECK(report.tokens >= scenario.workload.tokens);
    CHECK(report.tokens <= scenario.workload.tokens * 62 / 60);  // at most about a step more
    CHECK(report.wall_clock_s > before_s);
    before_s = report.wall_clock_s;
  }
  // Away from round 1 on: 5 steps of all, and then 3/4 of each step. 60 = 5 + (n − 5)·3/4 gives n = 78.33.
  const Scenario plain = four_sites(1e11);
  CHECK(before_s == Approx(79 + 2 + average_s(plain, 4) + 15 * average_s(plain, 3)).epsilon(1e-6));
}

TEST_CASE("links that change: what a quorum loses is trained later as well") {
  Scenario scenario = four_sites(1e11);
  scenario.platform.sites[3].compute_factor = 2.5;
  scenario.strategy.quorum = 3;
  platforms::LinkChange change;
  change.at_s = 20;
  change.bandwidth_bytes_per_s = 2e11;
  scenario.platform.changes = {change};
  scenario.workload.tokens *= 500;  // too many rounds to execute each
  const RunReport report = simulated(scenario, {.rounds = 40});
  REQUIRE(report.attendance);
  CHECK(report.attendance->trained_share == Approx(0.75).epsilon(0.05));
  CHECK(report.tokens >= scenario.workload.tokens * 999 / 1000);
}

TEST_CASE("what cannot go on without a site is refused") {
  const auto refused = [](const Scenario& scenario) { CHECK_THROWS_AS(simulated(scenario), InputError); };
  Scenario random = tests::ideal_scenario("fomoe", 4, 2);
  random.strategy.placement = costmodel::PlacementKind::random;
  random.strategy.quorum = 3;
  refused(random);
  Scenario server = with_outage(four_sites(1e9, "fedavg"), 0, 1, 1, FailurePolicy::drop);
  server.failures->timeout_s = 1;
  refused(server);
  Scenario many = four_sites(1e9);
  many.strategy.quorum = 5;
  refused(many);
  refused(with_outage(four_sites(1e9), 0, 1, 1, FailurePolicy::drop));  // without a time-out
  refused(with_outage(four_sites(1e9), 0, 1, 1, FailurePolicy::wait));  // without checkpoint_rounds
}

TEST_CASE("a run without any site that has the training state ends with an error") {
  Scenario scenario = with_outage(four_sites(1e9), 0, 1, 2, FailurePolicy::drop);
  scenario.failures->timeout_s = 1;
  for (const int site : {1, 2, 3}) scenario.failures->outages.push_back({site, 1, 3});
  CHECK_THROWS_WITH_AS(simulated(scenario), doctest::Contains("no site is left that has the training state"),
                       std::runtime_error);
}
