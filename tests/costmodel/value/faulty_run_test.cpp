// Tests of single runs with failures: by hand, and random ones against the closed form.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "costmodel/math/random.hpp"
#include "tests/costmodel/value/failing_run.hpp"

using namespace fomoe;
using namespace fomoe::tests;

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
