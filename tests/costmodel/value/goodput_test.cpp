// Tests of runs with failures: single failures by hand, and random ones against the closed form.
#include "costmodel/value/goodput.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <deque>
#include <limits>
#include <string>
#include <utility>

#include "costmodel/compose/check.hpp"
#include "costmodel/compose/extra_traffic.hpp"
#include "costmodel/counts/memory.hpp"
#include "costmodel/formula/closed_form.hpp"
#include "costmodel/math/random.hpp"
#include "costmodel/math/replicas.hpp"
#include "platforms/support/input_error.hpp"
#include "tests/scenarios.hpp"

namespace {

using namespace fomoe;
using namespace fomoe::costmodel;

constexpr double kNever = std::numeric_limits<double>::infinity();

/// Returns a source of gaps between failures: the given ones in order, and then no failure ever again.
Gap gaps(std::deque<double> next) {
  return [next](double events_per_s) mutable {
    if (events_per_s <= 0 || next.empty()) return kNever;
    const double gap = next.front();
    next.pop_front();
    return gap;
  };
}

/// A run of four sites: 100 s of work in rounds of 10 s, with a checkpoint of 1 s after every round.
FaultyRun run_of_four(FailurePolicy policy) {
  FaultyRun run;
  run.work_s = 100;
  run.round_s = 10;
  run.sites = 4;
  run.site_failures_per_s = 0.001;
  run.outage_s = 5;
  run.transfer_s = 3;
  run.link_outage_s = 6;
  run.checkpoint_s = 1;
  run.interval_s = 10;
  run.policy = policy;
  return run;
}

}  // namespace

TEST_CASE("without failures a run takes its work and its checkpoints, and the last round has no checkpoint") {
  for (const FailurePolicy policy : {FailurePolicy::wait, FailurePolicy::drop})
    CHECK(finish_s(run_of_four(policy), gaps({})) == doctest::Approx(100 + 9 * 1).epsilon(1e-12));
}

TEST_CASE(
    "policy wait, one failure at 37 s: three rounds are saved, 4 s are lost, then the recovery follows") {
  FaultyRun run = run_of_four(FailurePolicy::wait);
  const double lost_s = 37 - 3 * (10 + 1), recovery_s = 5 + 3;
  CHECK(finish_s(run, gaps({37})) == doctest::Approx(109 + lost_s + recovery_s).epsilon(1e-12));
  // A second failure comes 2 s into the recovery.
  CHECK(finish_s(run, gaps({37, 2})) == doctest::Approx(109 + lost_s + 2 + recovery_s).epsilon(1e-12));
  // The failure comes while a checkpoint is being written, so that this checkpoint does not count.
  CHECK(finish_s(run, gaps({10.5})) == doctest::Approx(109 + 10.5 + recovery_s).epsilon(1e-12));
}

TEST_CASE("sites that differ: the one that fails decides how long it is away") {
  FaultyRun run = run_of_four(FailurePolicy::wait);
  run.each = {{0, 0, 1000}, {0.001, 0, 5}, {0, 0, 1000}, {0, 0, 1000}};
  CHECK(all_site_failures_per_s(run) == 0.001);
  const double lost_s = 37 - 3 * (10 + 1);
  // Gaps: to the failure, and that of the only site that can fail.
  CHECK(finish_s(run, gaps({37, 1})) == doctest::Approx(109 + lost_s + 5 + 3).epsilon(1e-12));
  FaultyRun drop = run_of_four(FailurePolicy::drop);
  drop.checkpoint_s = 0;
  drop.transfer_s = 1;
  drop.timeout_s = 2;
  drop.each = {{0, 0, 1000, 0.25}, {0.001, 0, 12, 0.25}, {0, 0, 1000, 0.25}, {0, 0, 1000, 0.25}};
  // As with equal sites that are away for 12 s: see the test of one failure below.
  CHECK(finish_s(drop, gaps({37, 1})) == doctest::Approx(100 + 2 + 2 * 10.0 / 4).epsilon(1e-12));
  // The site has half of the batch.
  drop.each = {{0, 0, 1000, 0.1}, {0.001, 0, 12, 0.5}, {0, 0, 1000, 0.2}, {0, 0, 1000, 0.2}};
  CHECK(finish_s(drop, gaps({37, 1})) == doctest::Approx(100 + 2 + 2 * 10.0 / 2).epsilon(1e-12));
}

TEST_CASE("policy drop: answers say that experts are assumed to keep an owner") {
  for (const int overlap : {2, 4}) {
    Scenario scenario = tests::ideal_scenario("fomoe", 4, overlap);
    scenario.failures = Failures{};
    scenario.failures->policy = FailurePolicy::drop;
    scenario.failures->site_mtbf_s = 1000;
    scenario.failures->checkpoint_s = 1;
    std::string notes;
    for (const std::string& note : closed_form(scenario).notes) notes += note + '\n';
    CHECK((notes.find("the 2 owners of an expert are never away at the same time") != std::string::npos) ==
          (overlap == 2));
  }
}

TEST_CASE("policy drop: what the others wait for does not fail again before it is back") {
  FaultyRun run = run_of_four(FailurePolicy::drop);
  run.sites = 2;
  run.checkpoint_s = 0;
  run.outage_s = 50;
  run.transfer_s = 0;
  run.timeout_s = 60;
  std::vector<double> rates;
  const Gap gap = [&](double rate) {
    rates.push_back(rate);
    return rates.size() == 1 ? 37.0 : kNever;
  };
  // The site is away from 37 to 87 s, and computes its part of the round again.
  CHECK(finish_s(run, gap) == doctest::Approx(30 + 57 + 10 + 60).epsilon(1e-12));
  // A site rather than a link, and the next failure while one of the two is away.
  CHECK(std::count(rates.begin(), rates.end(), 0.001) == 2);
}

TEST_CASE("policy drop: links that fail lose no work of sites that keep their state") {
  FaultyRun run = run_of_four(FailurePolicy::drop);
  run.checkpoint_s = 0;
  run.site_failures_per_s = 0;
  run.link_failures_per_s = 0.001;
  run.timeout_s = 7;
  const auto once = [](double at) {
    return [at, first = true](double rate) mutable {
      return rate > 0 && std::exchange(first, false) ? at : kNever;
    };
  };
  CHECK(finish_s(run, once(32)) == doctest::Approx(100));      // back within the round
  CHECK(finish_s(run, once(37)) == doctest::Approx(100 + 3));  // 6 s from 37 s on
  // The only site is cut off: what it has done before this round stays.
  run.sites = 1;
  run.timeout_s = 0;
  run.interval_s = 1000;
  CHECK(finish_s(run, once(37)) == doctest::Approx(37 + 6 + 3 + 70));
}

TEST_CASE("policy drop: a site's share of the batch is missing while it is away") {
  Scenario scenario = tests::ideal_scenario("diloco", 4);
  scenario.workload.global_batch_sequences = 12;
  scenario.workload.tokens *= 300;
  scenario.failures = Failures{};
  scenario.failures->policy = FailurePolicy::drop;
  scenario.failures->checkpoint_s = 1;
  scenario.failures->sites.assign(4, scenario.failures->at(0));
  scenario.failures->sites[0].site_mtbf_s = 200;
  scenario.failures->sites[0].detection_s = 0;
  scenario.failures->sites[0].restart_s = 200;  // away for half of the time
  const double of_equals = closed_form(scenario).goodput->goodput;
  scenario.workload.batch_shares = {9, 1, 1, 1};
  const FaultyRun run = faulty_run(scenario, closed_form(scenario));
  CHECK(run.each[0].share == doctest::Approx(0.75));
  CHECK(closed_form(scenario).goodput->goodput < 0.75 * of_equals);
  scenario.failures->sites.clear();
  CHECK(faulty_run(scenario, closed_form(scenario)).each.size() == 4);
  scenario.failures->policy = FailurePolicy::wait;
  CHECK(faulty_run(scenario, closed_form(scenario)).each.empty());
}

TEST_CASE("policy wait: each site and link has its own outage, and the run waits for the last one") {
  FaultyRun run = run_of_four(FailurePolicy::wait);
  run.link_failures_per_s = 0.001;
  run.link_outage_s = 60;
  const double lost_s = 37 - 3 * (10 + 1);
  // Gaps: to a site's failure and to a link's, again and again. A link fails at 37 s, for 60 s; a site after
  // 2 s more, for 8 s, and its work is lost.
  CHECK(finish_s(run, gaps({1000, 37, 2, 1000, 1000, 1000, 1000, 1000})) ==
        doctest::Approx(109 + lost_s + 60).epsilon(1e-12));
  // A site fails first, and the link 2 s later.
  CHECK(finish_s(run, gaps({37, 1000, 1000, 2, 1000, 1000, 1000, 1000})) ==
        doctest::Approx(109 + lost_s + 2 + 60).epsilon(1e-12));
  // Two links.
  CHECK(finish_s(run, gaps({1000, 37, 1000, 2, 1000, 1000, 1000, 1000})) ==
        doctest::Approx(109 + 2 + 60).epsilon(1e-12));
  // A short outage within a long one.
  run.link_failures_per_s = 0;
  run.each = {{0.001, 0, 50}, {0.001, 0, 5}};
  run.sites = 2;
  CHECK(finish_s(run, gaps({37, 1, 2, 2, 1})) == doctest::Approx(109 + lost_s + 50 + 3).epsilon(1e-12));
}

TEST_CASE(
    "without a checkpoint interval, the recommended one is used; owned sites do not fail by preemption") {
  Scenario scenario = tests::ideal_scenario("diloco", 4);
  scenario.workload.tokens *= 200;
  Failures failures;
  failures.preemptions_per_s = 1 / 3000.0;
  failures.restart_s = 60;
  failures.checkpoint_s = 20;
  scenario.failures = failures;
  const Goodput all = *closed_form(scenario).goodput;
  CHECK(all.checkpoint_rounds == all.recommended_rounds);
  CHECK(all.goodput == all.recommended_goodput);
  scenario.failures->sites.assign(4, scenario.failures->at(0));
  scenario.failures->sites[0].preemptions_per_s = 0;
  const Goodput three = *closed_form(scenario).goodput;
  CHECK(three.system_mtbf_s == doctest::Approx(all.system_mtbf_s * 4 / 3));
  CHECK(three.finish_p50_s < all.finish_p50_s);
  for (SiteFailures& site : scenario.failures->sites) site.preemptions_per_s = 0;
  CHECK_FALSE(scenario.failures->at_random());
}

TEST_CASE("policy wait, a link fails: all sites wait and lose no work, but a dead link is never repaired") {
  FaultyRun run = run_of_four(FailurePolicy::wait);
  run.site_failures_per_s = 0;
  run.link_failures_per_s = 0.001;
  CHECK(finish_s(run, gaps({37})) == doctest::Approx(109 + 6).epsilon(1e-12));
  run.link_outage_s = kNever;
  CHECK(finish_s(run, gaps({37})) == kNever);
  CHECK(finish_s(run, gaps({109.5})) == doctest::Approx(109));  // after the end of the run
}

TEST_CASE("policy drop, one failure at 37 s: the time-out, and a quarter of the work of each missed round") {
  FaultyRun run = run_of_four(FailurePolicy::drop);
  run.checkpoint_s = 0;
  run.outage_s = 12;
  run.transfer_s = 1;
  run.timeout_s = 2;
  // The site is away from 37 to 50 s. It misses the round that begins at 30 s and, after the time-out, the
  // one at 42 s.
  CHECK(finish_s(run, gaps({37})) == doctest::Approx(100 + 2 + 2 * 10.0 / 4).epsilon(1e-12));
  run.outage_s = 30;  // away until 68 s: misses the rounds at 30, 42, 52, 62 s
  CHECK(finish_s(run, gaps({37})) == doctest::Approx(100 + 2 + 4 * 10.0 / 4).epsilon(1e-12));
  run.timeout_s = 40;  // longer than the absence: 31 s of waiting, and the site repeats its 7 s of the round
  CHECK(finish_s(run, gaps({37})) == doctest::Approx(100 + 31 + 7).epsilon(1e-12));
}

TEST_CASE(
    "policy drop: a dead link removes its site for good, and without sites the checkpoint is restored") {
  FaultyRun two = run_of_four(FailurePolicy::drop);
  two.sites = 2;
  two.checkpoint_s = 0;
  two.site_failures_per_s = 0;
  two.link_failures_per_s = 0.001;
  two.link_outage_s = kNever;
  // Half of round 1 is lost, and then half of every round: (100 − 5) ÷ 5 more rounds.
  CHECK(finish_s(two, [first = true](double rate) mutable {
          if (rate <= 0 || !std::exchange(first, false)) return kNever;
          return 5.0;
        }) == doctest::Approx(10 + 19 * 10).epsilon(1e-12));

  FaultyRun one = run_of_four(FailurePolicy::drop);
  one.sites = 1;
  one.checkpoint_s = 0;
  one.interval_s = 20;
  one.work_s = 60;
  // Checkpoints are at 20 and 40 s, the site is away from 55 to 63 s, and 20 s of work remain after the
  // checkpoint.
  CHECK(finish_s(one, gaps({55})) == doctest::Approx(63 + 20).epsilon(1e-12));
}

namespace {

/// Mean of finish_s of a single site under policy wait. λ is its failure rate, R the outage and the time to
/// read the state, n the number of segments of work (Daly 2006, without failures in R):
///   (1/λ + R) · [(n−1)·(e^{λ(τ+C)} − 1) + (e^{λτ'} − 1)],  τ' the work of the last segment
double expected_finish_s(const FaultyRun& run) {
  const double rate = run.site_failures_per_s, before_last = std::ceil(run.work_s / run.interval_s) - 1;
  const double last_s = run.work_s - before_last * run.interval_s;
  return (1 / rate + run.outage_s + run.transfer_s) *
         (before_last * std::expm1(rate * (run.interval_s + run.checkpoint_s)) + std::expm1(rate * last_s));
}

}  // namespace

TEST_CASE("random failures: the mean of 4000 samples is within four standard errors of the closed form") {
  FaultyRun run = run_of_four(FailurePolicy::wait);
  run.sites = 1;
  run.work_s = 995;  // the last segment is shorter than the others
  run.site_failures_per_s = 0.02;
  constexpr int kSamples = 4000;
  double sum = 0, squares = 0;
  for (int i = 0; i < kSamples; ++i) {
    RandomEngine random = seeded_engine(7, static_cast<std::uint64_t>(i));
    const double finish = finish_s(run, [&](double rate) {
      return rate <= 0 ? kNever : -std::log((static_cast<double>(random() >> 11) + 0.5) * 0x1p-53) / rate;
    });
    sum += finish;
    squares += finish * finish;
  }
  const double mean = sum / kSamples;
  const double error = std::sqrt((squares / kSamples - mean * mean) / kSamples);
  const double by_hand = expected_finish_s(run);
  CHECK(std::abs(mean - by_hand) < 4 * error);
  CHECK(error < 0.01 * by_hand);
}

TEST_CASE("Young's interval equals Daly's where checkpoints cost little, and Daly's is optimal by formula") {
  CHECK(young_interval_s(20, 10'000) == doctest::Approx(std::sqrt(2 * 20 * 10'000.0)));
  CHECK(daly_interval_s(20, 10'000) ==
        doctest::Approx(std::sqrt(400'000.0) * (1 + std::sqrt(0.001) / 3 + 0.001 / 9) - 20).epsilon(1e-12));
  CHECK(daly_interval_s(1e-6, 1e6) == doctest::Approx(young_interval_s(1e-6, 1e6)).epsilon(1e-5));
  CHECK(daly_interval_s(30, 10) == 10);
  CHECK(daly_interval_s(20, kNever) == kNever);
  FaultyRun run = run_of_four(FailurePolicy::wait);
  run.sites = 1;
  run.site_failures_per_s = 1.0 / 10'000;
  run.checkpoint_s = 20;
  const auto with_segments = [&](double segments) {
    FaultyRun other = run;
    other.work_s = 1e6;
    other.interval_s = 1e6 / segments;
    return expected_finish_s(other);
  };
  const double daly = std::round(1e6 / daly_interval_s(20, 10'000));
  for (const double factor : {0.5, 0.8, 0.9, 1.1, 1.25, 2.0})
    CHECK(with_segments(daly) < with_segments(std::round(daly * factor)));
}

TEST_CASE("the recommended time-out is a healthy round's wait, or the whole absence where that loses less") {
  FaultyRun run = run_of_four(FailurePolicy::drop);
  // Dropping: 2 + ⌈8/10⌉·10/4 = 4.5 s; waiting: 8 + 10/2 = 13 s.
  CHECK(recommended_timeout_s(run, 2) == 2);
  // Dropping: 11 + 2.5 = 13.5 s.
  CHECK(recommended_timeout_s(run, 11) == 8);
  run.sites = 1;
  CHECK(recommended_timeout_s(run, 2) == 8);
  // Only the site with nine tenths of the batch fails: dropping 2 + 0.9 · 10 s; waiting 4 + 3 + 5 s.
  run.sites = 2;
  run.each = {{0.001, 0, 4, 0.9}, {0, 0, 100, 0.1}};
  CHECK(recommended_timeout_s(run, 2) == 2);
  CHECK(recommended_timeout_s(run, 4) == 7);
}

TEST_CASE(
    "goodput without failures: checkpoints cost time, and a site that returns reads its own or gets the "
    "state") {
  Scenario scenario = tests::ideal_scenario("diloco", 4);
  scenario.failures = Failures{};
  scenario.failures->checkpoint_s = 3;
  scenario.failures->checkpoint_rounds = 2;
  scenario.failures->samples = 10;
  const RunReport report = closed_form(scenario);
  REQUIRE(report.goodput);
  // 12 rounds have five checkpoints: after rounds 2, 4, 6, 8 and 10.
  CHECK(report.goodput->goodput == doctest::Approx(report.wall_clock_s / (report.wall_clock_s + 5 * 3)));
  CHECK(report.goodput->finish_p95_s == doctest::Approx(report.wall_clock_s + 5 * 3));
  CHECK(report.goodput->recommended_rounds == 12);  // without failures: no checkpoint before the end
  const double state_bytes = state_bytes_per_site(scenario);
  CHECK(report.goodput->transfer_s == 3);  // read as fast as it was written
  const double timeout_s = report.goodput->recommended_timeout_s;
  scenario.failures->storage_bytes_per_s =
      4e8;  // the pause is shorter than what is written in the background
  CHECK(closed_form(scenario).goodput->checkpoint_s == 3);
  CHECK(closed_form(scenario).goodput->transfer_s == doctest::Approx(state_bytes / 4e8));
  scenario.failures->checkpoint_s.reset();
  scenario.failures->storage_bytes_per_s = 5e8;
  CHECK(closed_form(scenario).goodput->checkpoint_s == doctest::Approx(state_bytes / 5e8));
  CHECK(closed_form(scenario).goodput->transfer_s == doctest::Approx(state_bytes / 5e8));
  scenario.failures->policy = FailurePolicy::drop;
  CHECK(closed_form(scenario).goodput->transfer_s == doctest::Approx(state_bytes / 1e9));
  CHECK(closed_form(scenario).goodput->recommended_timeout_s == timeout_s);  // it is of this policy
}

TEST_CASE("goodput of a scenario: the best sampled interval is near Daly's, and finish times are ordered") {
  Scenario scenario = tests::ideal_scenario("diloco", 4);
  scenario.workload.tokens *= 100;
  const double wall_clock_s = closed_form(scenario).wall_clock_s;
  scenario.failures = Failures{};
  scenario.failures->site_mtbf_s = wall_clock_s / 5;  // 20 failures in a run of 4 sites
  scenario.failures->detection_s = 1;
  scenario.failures->restart_s = 10;
  scenario.failures->checkpoint_s = 5;
  scenario.failures->samples = 400;
  const Goodput goodput = *closed_form(scenario).goodput;
  const double mtbf_s = wall_clock_s / 20;
  CHECK(goodput.system_mtbf_s == doctest::Approx(mtbf_s));
  CHECK(goodput.daly_interval_s == doctest::Approx(daly_interval_s(5, mtbf_s)));
  const double round_s = wall_clock_s / 1200;
  const double best_s = static_cast<double>(goodput.recommended_rounds) * round_s;
  CHECK(best_s > goodput.daly_interval_s / 2.1);
  CHECK(best_s < goodput.daly_interval_s * 2.1);
  CHECK(goodput.recommended_goodput >= goodput.goodput);
  CHECK(goodput.finish_p50_s > wall_clock_s);
  CHECK(goodput.finish_p95_s > goodput.finish_p50_s);
  CHECK(goodput.goodput < 1);
  CHECK(goodput.unfinished_share == 0);
}

TEST_CASE("goodput of a scenario: with very many failures the estimate ends, and it takes fewer samples") {
  Scenario scenario = tests::ideal_scenario("diloco", 4);
  scenario.workload.tokens *= 100'000;  // 1.2 million rounds
  scenario.failures = Failures{};
  scenario.failures->site_mtbf_s = 400;  // one failure per 100 s at 4 sites: at least 60,000
  scenario.failures->restart_s = 10;
  scenario.failures->checkpoint_s = 1;
  for (const FailurePolicy policy : {FailurePolicy::wait, FailurePolicy::drop}) {
    scenario.failures->policy = policy;
    const Goodput goodput = *closed_form(scenario).goodput;
    CHECK(goodput.samples >= 5);
    CHECK(goodput.samples < 100);
    CHECK(goodput.unfinished_share == 0);
    CHECK(goodput.goodput > 0.5);
    CHECK(goodput.finish_p95_s < 1.02 * goodput.finish_p50_s);
  }
}

TEST_CASE(
    "goodput of a scenario: a dead link under policy wait is reported and does not block the estimate") {
  Scenario scenario = tests::ideal_scenario("diloco", 4);
  scenario.failures = Failures{};
  scenario.failures->checkpoint_s = 1;
  scenario.failures->link_mtbf_s = 1;  // four links: the first fails within about a second
  scenario.failures->samples = 100;
  const auto said = [](const RunReport& report) {
    std::string all;
    for (const std::string& note : report.notes) all += note + '\n';
    return all;
  };
  const RunReport waiting = closed_form(scenario);
  CHECK(waiting.goodput->unfinished_share == 1);
  CHECK(waiting.goodput->finish_p50_s == kNever);
  CHECK(waiting.goodput->goodput == 0);
  CHECK(said(waiting).find("CANNOT FINISH in 100 of 100 samples: a failed link never recovers") !=
        std::string::npos);
  scenario.failures->link_repair_s = 1;
  scenario.failures->link_mtbf_s = 1000;
  CHECK(closed_form(scenario).goodput->unfinished_share == 0);
  CHECK(said(closed_form(scenario)).find("CANNOT FINISH") == std::string::npos);
}

TEST_CASE("replicas: mean, quantiles by nearest rank, and Student's interval by hand") {
  const Spread spread = spread_of({3, 1, 2, 5, 4});
  CHECK(spread.mean == doctest::Approx(3));
  CHECK(spread.p5 == 1);
  CHECK(spread.p50 == 3);
  CHECK(spread.p95 == 5);
  // s² = (4 + 1 + 0 + 1 + 4) ÷ 4 = 2.5; t with 4 degrees of freedom is 2.7764.
  CHECK(spread.mean_high - 3 == doctest::Approx(2.7764 * std::sqrt(2.5 / 5)).epsilon(1e-9));
  CHECK(3 - spread.mean_low == doctest::Approx(2.7764 * std::sqrt(2.5 / 5)).epsilon(1e-9));
  // Values from tables of Student's t at 97.5 %.
  CHECK(student_t(1) == doctest::Approx(12.7062));
  CHECK(std::abs(student_t(11) - 2.200985) < 1.2e-4);
  CHECK(std::abs(student_t(12) - 2.178813) < 1e-4);
  CHECK(std::abs(student_t(15) - 2.131450) < 5e-5);
  CHECK(std::abs(student_t(20) - 2.085963) < 2e-5);
  CHECK(std::abs(student_t(30) - 2.042272) < 1e-5);
  CHECK(student_t(1'000'000) == doctest::Approx(1.95996).epsilon(1e-5));
}

TEST_CASE("policy drop is refused where a lost site holds the only copy of something") {
  const auto refused = [](const std::string& method, int overlap, int sites = 4) {
    Scenario scenario = tests::ideal_scenario(method, sites, overlap);
    scenario.model.layers = 8;
    scenario.compute = AssumedDevice{1e12, 0.4, 0};
    scenario.workload.global_batch_sequences = 64;
    scenario.failures = Failures{};
    scenario.failures->site_mtbf_s = 1e5;
    scenario.failures->checkpoint_s = 1;
    check(scenario);
    scenario.failures->policy = FailurePolicy::drop;
    try {
      check(scenario);
      return false;
    } catch (const InputError& error) {
      CHECK(error.key() == "failures.policy");
      return true;
    }
  };
  for (const char* method :
       {"fsdp", "pipeline_wan", "expert_parallel_wan", "remote_experts", "centralised"}) {
    CAPTURE(method);
    CHECK(refused(method, 0));
  }
  CHECK(refused("fomoe", 1));
  CHECK_FALSE(refused("fomoe", 2));
  CHECK_FALSE(refused("fomoe", 1, 1));  // a single site has nobody to drop
  CHECK_FALSE(refused("diloco", 0));
  CHECK_FALSE(refused("ddp", 0));
}

TEST_CASE(
    "a run that meets no failure should save as seldom as the grid allows: after 8 times Daly's interval") {
  Scenario scenario = tests::ideal_scenario("diloco", 4);
  scenario.workload.tokens *= 100;
  const double wall_clock_s = closed_form(scenario).wall_clock_s;
  scenario.failures = Failures{};
  scenario.failures->site_mtbf_s = 1e4 * wall_clock_s;
  scenario.failures->checkpoint_s = wall_clock_s / 1e6;
  scenario.failures->samples = 10;
  const Goodput goodput = *closed_form(scenario).goodput;
  const double round_s = wall_clock_s / 1200;
  CHECK(goodput.recommended_rounds == std::llround(8 * goodput.daly_interval_s / round_s));
}

TEST_CASE("work that is lost is done again") {
  double repeated_s = 0;
  FaultyRun run = run_of_four(FailurePolicy::wait);
  // 37 s: three rounds of 11 s with their checkpoints, and 4 s of the next one.
  CHECK(finish_s(run, gaps({37}), repeated_s) == doctest::Approx(109 + 4 + 8));
  CHECK(repeated_s == doctest::Approx(4));
  // During a checkpoint, all work since the last one is lost.
  repeated_s = 0;
  (void)finish_s(run, gaps({10.5}), repeated_s);
  CHECK(repeated_s == doctest::Approx(10));
  // One of four sites loses its part of a round, and the last of all what no checkpoint has.
  FaultyRun drop = run_of_four(FailurePolicy::drop);
  drop.checkpoint_s = 0;
  repeated_s = 0;
  (void)finish_s(drop, gaps({37}), repeated_s);
  CHECK(repeated_s == doctest::Approx(7 / 4.0));
}
