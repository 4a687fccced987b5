// Tests of the goodput of scenarios: samples of runs with failures, intervals, and what is said of them.
#include "costmodel/value/goodput.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <string>

#include "costmodel/compose/check.hpp"
#include "costmodel/compose/extra_traffic.hpp"
#include "costmodel/counts/memory.hpp"
#include "costmodel/formula/closed_form.hpp"
#include "costmodel/math/replicas.hpp"
#include "platforms/support/input_error.hpp"
#include "tests/costmodel/value/failing_run.hpp"
#include "tests/scenarios.hpp"

using namespace fomoe;
using namespace fomoe::tests;

TEST_CASE("policy drop: answers say what becomes of experts without an owner") {
  for (const int overlap : {2, 4}) {
    Scenario scenario = tests::ideal_scenario("fomoe", 4, overlap);
    scenario.failures = Failures{};
    scenario.failures->policy = FailurePolicy::drop;
    scenario.failures->site_mtbf_s = 1000;
    scenario.failures->checkpoint_s = 1;
    std::string notes;
    for (const std::string& note : closed_form(scenario).notes) notes += note + '\n';
    CHECK((notes.find("while all 2 owners of an expert are away, the others go on") != std::string::npos) ==
          (overlap == 2));
  }
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
