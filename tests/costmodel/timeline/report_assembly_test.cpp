// Tests how a report of a whole run follows from executed rounds: totals of rounds that were not executed,
// the means of each site, and the interval of the wall clock, by hand.
#include "costmodel/timeline/report_assembly.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <vector>

#include "tests/scenarios.hpp"

using namespace fomoe;
using namespace fomoe::costmodel;
using doctest::Approx;

namespace {

// Quantiles of Student's t, from a printed table.
constexpr double kT2 = 4.3027, kT3 = 3.1824;

/// Two sites. In every round, "steps" is operation 0 and "sync" operation 1.
Plan plan_of(std::vector<RoundClass> classes) {
  Plan plan;
  for (int node = 0; node < 2; ++node) plan.nodes.push_back({NodeKind::worker, node, 1});
  plan.classes = std::move(classes);
  for (const RoundClass& kind : plan.classes) plan.rounds += kind.count;
  plan.steps = plan.rounds;
  return plan;
}

RoundClass class_of(std::int64_t count, bool identical, std::int64_t first, bool overlapping = false) {
  return {count, 1, identical, [first](std::int64_t i) { return first + i; }, overlapping};
}

/// Rounds that end at these times. The first site computes for 3 s, the second one for 4 s. Then they
/// exchange until the end: the first one sends 100 B, the second one 20 B, and the last 2 s of it are in
/// flight.
Timeline rounds_of(const std::vector<double>& ends_s, std::int64_t first = 0) {
  Timeline timeline;
  timeline.round_end_s = ends_s;
  double begin_s = 0;
  for (std::size_t i = 0; i < ends_s.size(); ++i) {
    const auto round = static_cast<std::int64_t>(i);
    const double end_s = ends_s[i];
    timeline.rounds.push_back(first + round);
    timeline.op_names.push_back({"steps", "sync"});
    for (const int node : {0, 1}) {
      const double computed_s = begin_s + 3 + node;
      timeline.intervals.push_back({node, 0, round, Activity::compute, begin_s, computed_s});
      timeline.intervals.push_back({node, 1, round, Activity::transfer, computed_s, end_s});
      timeline.flows.push_back({node, round, end_s - 2, end_s});
    }
    timeline.sent.add(0, 1, 100);
    timeline.sent.add(1, 0, 20);
    begin_s = end_s;
  }
  return timeline;
}

Scenario two_sites() { return tests::ideal_scenario("local_sgd", 2); }

}  // namespace

TEST_CASE("identical rounds: the last executed one stands for those that are missing") {
  const Plan plan = plan_of({class_of(10, true, 0)});
  const RunReport report = assemble_report(two_sites(), plan, {rounds_of({12, 22, 31})});
  CHECK(report.wall_clock_s == Approx(31 + 7 * 9));
  CHECK(report.round.duration_s == Approx(9.4));
  CHECK(report.round.first_duration_s == 12);
  CHECK(report.round.count == 10);
  CHECK_FALSE(report.wall_clock_interval_s.has_value());
  CHECK(report.sites[0].compute_s == Approx(3));
  CHECK(report.sites[1].compute_s == Approx(4));
  for (const int site : {0, 1}) {
    CAPTURE(site);
    const SiteReport& row = report.sites[static_cast<std::size_t>(site)];
    CHECK(row.exposed_communication_s == Approx(2));
    CHECK(row.idle_s == Approx(9.4 - (3 + site) - 2));
    CHECK(row.bytes_sent == Approx(site == 0 ? 1000 : 200));
    CHECK(row.bytes_received == Approx(site == 0 ? 200 : 1000));
  }
  CHECK(report.round.communication_s == Approx(9 - 3));  // from the moment at which the first site is ready
  CHECK(report.round.transferring_s == Approx(2));
  CHECK(report.bytes_sent_per_site_per_round == Approx(60));
  CHECK(report.compute_utilization == Approx(3.5 / 9.4));
  // The slower site computes, and then the exchange takes the rest of the last executed round.
  REQUIRE(report.critical_path.size() == 2);
  CHECK(report.critical_path[0].site == "site-1");
  CHECK(report.critical_path[0].seconds == Approx(4));
  CHECK(report.critical_path[1].what == "sync");
  CHECK(report.critical_path[1].seconds == Approx(5));
}

TEST_CASE("what a training does between its rounds is a step of the critical path, and no compute") {
  const Plan plan = plan_of({class_of(3, true, 0)});
  Timeline timeline = rounds_of({12, 22, 31});
  for (Interval& interval : timeline.intervals)  // site-1 validates for 2 s before it computes
    if (interval.node == 1 && interval.round > 0 && interval.activity == Activity::compute)
      interval.start_s += 2;
  for (const std::int64_t round : {1, 2})
    timeline.intervals.push_back(
        {1, kNoOp, round, Activity::upkeep, round == 1 ? 12.0 : 22.0, round == 1 ? 14.0 : 24.0});
  const RunReport report = assemble_report(two_sites(), plan, {timeline});
  REQUIRE(report.critical_path.size() == 3);
  CHECK(report.critical_path[0].activity == Activity::upkeep);
  CHECK(report.critical_path[0].what == kUpkeepName);
  CHECK(report.critical_path[0].site == "site-1");
  CHECK(report.critical_path[0].seconds == Approx(2));
  CHECK(report.critical_path[1].activity == Activity::compute);
  CHECK(report.critical_path[1].seconds == Approx(2));
  CHECK(report.sites[1].compute_s == Approx((4 + 2 + 2) / 3.0));
}

TEST_CASE("a run all of whose rounds were executed lasts as long as they do") {
  const Plan plan = plan_of({class_of(3, true, 0)});
  const RunReport report = assemble_report(two_sites(), plan, {rounds_of({12, 22, 31})});
  CHECK(report.wall_clock_s == Approx(31));
  CHECK(report.round_durations_s == std::vector<double>{12, 10, 9});
  CHECK(report.round.communication_s == Approx((31 - 3 * 3) / 3.0));
}

TEST_CASE("a sample of random rounds: their mean without the first one, and the interval by Student's t") {
  // 100 rounds, of which 5 took 20, 10, 11, 9 and 10 s. The first one is that of the run, and counts as it
  // is.
  const Plan plan = plan_of({class_of(100, false, 0)});
  const RunReport report = assemble_report(two_sites(), plan, {rounds_of({20, 30, 41, 50, 60})});
  const double mean_s = 10, variance_s2 = 2.0 / 3, missing = 95;
  CHECK(report.wall_clock_s == Approx(60 + missing * mean_s));
  // The error of the mean of 4, in each missing round, and the scatter of the missing rounds.
  const double variance = missing * missing * variance_s2 / 4 + missing * variance_s2;
  REQUIRE(report.wall_clock_interval_s.has_value());
  CHECK(report.wall_clock_interval_s->high - report.wall_clock_s == Approx(kT3 * std::sqrt(variance)));
  CHECK(report.wall_clock_s - report.wall_clock_interval_s->low == Approx(kT3 * std::sqrt(variance)));
}

TEST_CASE(
    "two kinds of random rounds: variances add up, with the degrees of freedom of Welch and Satterthwaite") {
  const Plan plan = plan_of({class_of(100, false, 0), class_of(50, false, 100)});
  const RunReport report =
      assemble_report(two_sites(), plan, {rounds_of({20, 30, 41, 50, 60}), rounds_of({7, 13, 17}, 100)});
  // The second kind does not start the run, so that 6 and 4 s, without the first 7 s, stand for all 50.
  CHECK(report.wall_clock_s == Approx(60 + 95 * 10 + 50 * 5));
  const double first = 95 * 95 * (2.0 / 3) / 4 + 95 * (2.0 / 3), second = 47 * 47 * 2.0 / 2 + 47 * 2.0;
  const double freedom = (first + second) * (first + second) / (first * first / 3 + second * second / 1);
  CHECK(std::lround(freedom) == 2);
  REQUIRE(report.wall_clock_interval_s.has_value());
  CHECK(report.wall_clock_interval_s->high - report.wall_clock_s == Approx(kT2 * std::sqrt(first + second)));
  CHECK(report.sites[0].bytes_sent == Approx(150 * 100));
  CHECK(report.round.communication_s ==
        Approx((100.0 * (10 - 3) + 50.0 * (5 - 3)) / 150));  // weighted by the rounds of each kind
}

TEST_CASE("overlapping rounds: one from the middle stands for those that are missing") {
  // The first two rounds fill the pipeline, and the last two empty it.
  const Plan plan = plan_of({class_of(20, true, 0, true)});
  const RunReport report = assemble_report(two_sites(), plan, {rounds_of({10, 14, 19, 24, 31, 37})});
  CHECK(report.wall_clock_s == Approx(37 + 14 * 5));
  // The site ends its own steps of two rounds 5 s apart and computes 3 s of them.
  CHECK(report.sites[0].compute_s == Approx((6 * 3 + 14 * 3) / 20.0));
  CHECK(report.sites[1].compute_s == Approx((6 * 4 + 14 * 4) / 20.0));
  CHECK_FALSE(report.wall_clock_interval_s.has_value());
}

TEST_CASE(
    "overlapping random rounds: those after the first quarter, without the last two, and their interval") {
  // 8 of 20 rounds. The fourth to the sixth one, of 6, 8 and 7 s, stand for the 12 that are missing.
  const Plan plan = plan_of({class_of(20, false, 0, true)});
  const RunReport report = assemble_report(two_sites(), plan, {rounds_of({10, 14, 19, 25, 33, 40, 45, 57})});
  CHECK(report.wall_clock_s == Approx(57 + 12 * 7));
  const double variance = 12 * 12 * 1.0 / 3 + 12 * 1.0;
  REQUIRE(report.wall_clock_interval_s.has_value());
  CHECK(report.wall_clock_interval_s->high - report.wall_clock_s == Approx(kT2 * std::sqrt(variance)));
  CHECK(report.wall_clock_s - report.wall_clock_interval_s->low == Approx(kT2 * std::sqrt(variance)));
}

TEST_CASE("samples that represent numbers of rounds: their weighted sums, and an error that is not random") {
  const Plan plan = plan_of({class_of(31, true, 0)});
  std::vector<RoundSample> samples(2);
  samples[0].timeline = rounds_of({12});
  samples[0].last = 1;
  samples[0].count = 1;
  samples[1].timeline = rounds_of({9, 15, 22, 30, 42});  // 6, 7 and 8 s were measured
  samples[1].first = 1;
  samples[1].last = 4;
  samples[1].count = 30;
  const RunReport report = assemble_report(two_sites(), plan, samples, 2.5);
  CHECK(report.wall_clock_s == Approx(12 + 30 * 7));
  CHECK(report.round.communication_s == Approx((12 - 3 + 30 * (7 - 3)) / 31.0));
  CHECK(report.sites[1].compute_s == Approx(4));
  CHECK(report.sites[0].bytes_sent == Approx(31 * 100));
  const double variance = 30 * 30 * 1.0 / 3 + 30 * 1.0;  // of 6, 7 and 8 s
  REQUIRE(report.wall_clock_interval_s.has_value());
  CHECK(report.wall_clock_interval_s->high - report.wall_clock_s == Approx(2.5 + kT2 * std::sqrt(variance)));
  // Batches of three rounds: there is only one, so that its variance is unknown.
  samples[1].batch = 3;
  const RunReport batches = assemble_report(two_sites(), plan, samples, 2.5);
  CHECK(batches.wall_clock_s == Approx(12 + 30 * 7));
  CHECK(batches.wall_clock_interval_s->high - batches.wall_clock_s == Approx(2.5));
}

TEST_CASE("overlapping rounds: a site's own steps are measured between its own ends, also within a second") {
  // A site computes ahead of the exchanges, and a server computes after them. In units of 0.01 s, rounds end
  // at 10, 20, and so on. The worker's steps of round r last 1, 5, 4, 8 and 3, and end at 10·r + 1.
  constexpr double kUnit_s = 0.01;
  const double lengths[] = {1, 5, 4, 8, 3};
  Timeline timeline;
  for (int round = 0; round < 5; ++round) {
    timeline.rounds.push_back(round);
    timeline.round_end_s.push_back(kUnit_s * 10 * (round + 1));
    timeline.op_names.push_back({"steps", "outer step"});
    const double done = 10.0 * round + 1;
    timeline.intervals.push_back(
        {0, 0, round, Activity::compute, kUnit_s * (done - lengths[round]), kUnit_s * done});
    timeline.intervals.push_back(
        {1, 1, round, Activity::compute, kUnit_s * (10 * round + 9), kUnit_s * (10 * round + 10)});
  }
  Plan plan = plan_of({class_of(5, true, 0, true)});
  plan.nodes[1].kind = NodeKind::server;
  std::vector<RoundSample> samples(1);
  samples[0].timeline = timeline;
  samples[0].first = 1;
  samples[0].last = 3;
  samples[0].count = 5;
  samples[0].overlapping = true;
  const RunReport report = assemble_report(two_sites(), plan, samples, 0);
  CHECK(report.wall_clock_s == Approx(5 * kUnit_s * 10));
  CHECK(report.sites[0].compute_s == Approx(kUnit_s * (5 + 4) / 2));  // rounds 1 and 2, from 1 to 21
  CHECK(report.sites[1].compute_s == Approx(kUnit_s * 1));            // without workers: from 10 to 30
  // The same rounds as a class of 12, of which 7 are missing: the steady round is that from 11 to 21.
  const Plan twelve = [&] {
    Plan longer = plan_of({class_of(12, true, 0, true)});
    longer.nodes[1].kind = NodeKind::server;
    return longer;
  }();
  const RunReport whole = assemble_report(two_sites(), twelve, {timeline});
  CHECK(whole.wall_clock_s == Approx(kUnit_s * (50 + 7 * 10)));
  CHECK(whole.sites[0].compute_s == Approx(kUnit_s * (1 + 5 + 4 + 8 + 3 + 7 * 4) / 12));
  CHECK(whole.sites[1].compute_s == Approx(kUnit_s * (5 + 7) / 12));
}

TEST_CASE("the busiest link may be one that several paths share") {
  Scenario scenario = two_sites();  // ports of 1 GB/s
  scenario.platform.shared_links = {{"backbone", 1e9}};
  scenario.platform.share(0, 1, {0});
  scenario.platform.share(1, 0, {0});
  const RunReport report =
      assemble_report(scenario, plan_of({class_of(10, true, 0)}), {rounds_of({12, 22, 31})});
  CHECK(report.bottleneck.link == "backbone");  // 100 B one way and 20 B the other way
  CHECK(report.bottleneck.link_busy_share == Approx(120 / 1e9 / report.round.duration_s));
}
