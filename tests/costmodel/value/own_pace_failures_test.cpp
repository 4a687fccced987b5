// Tests failures of sites that train at their own pace: by hand, and the mean by formula.
#include <doctest/doctest.h>

#include <cmath>
#include <deque>

#include "costmodel/formula/closed_form.hpp"
#include "costmodel/math/random.hpp"
#include "tests/costmodel/value/failing_run.hpp"
#include "tests/scenarios.hpp"

using namespace fomoe;
using namespace fomoe::tests;

namespace {

/// A run of four sites of which each fails alone. A failure loses 2 s of its site's work.
FaultyRun at_own_pace() {
  FaultyRun run = run_of_four(FailurePolicy::drop);
  run.own_pace = true;
  run.lost_s = 2;
  return run;
}

}  // namespace

TEST_CASE(
    "at their own pace, a site that fails stops only itself, and loses its steps since its last exchange") {
  CHECK(finish_s(at_own_pace(), gaps({})) == doctest::Approx(100).epsilon(1e-12));
  // Gaps: to a failure among those who are there, then that of their sites, which comes before that of a
  // link.
  const auto after = [](const std::deque<double>& next) { return finish_s(at_own_pace(), gaps(next)); };
  // One of four is away for 8 s, and half a second of the work of all is lost.
  CHECK(after({20, kNever}) == doctest::Approx(100 + 8 / 4.0 + 2 / 4.0).epsilon(1e-12));
  CHECK(after({20, kNever, 1, kNever}) == doctest::Approx(100 + 2 * (8 / 4.0 + 2 / 4.0)).epsilon(1e-12));
  // All are away from 30 s to 38 s.
  CHECK(after({30, kNever, 0, kNever, 0, kNever, 0, kNever}) == doctest::Approx(100 + 8 + 2).epsilon(1e-12));
  FaultyRun of_links = at_own_pace();
  of_links.site_failures_per_s = 0;
  of_links.link_failures_per_s = 0.001;
  of_links.link_outage_s = kNever;  // a link that is never repaired: three sites do the rest
  CHECK(finish_s(of_links, gaps({20})) == doctest::Approx(20 + 80 / 0.75).epsilon(1e-12));
}

TEST_CASE("at their own pace, the mean finish time is that of sites which are there part of the time") {
  FaultyRun run = at_own_pace();
  run.work_s = 200'000;
  run.each = {{1e-3, 0, 5, 0.5}, {2e-3, 0, 50, 0.3}, {4e-3, 0, 20, 0.1}, {0, 0, 5, 0.1}};
  double rate = 0;  // of the work of all: each site's share, while it is there, without what it loses
  for (const FaultySite& site : run.each)
    rate += site.share * (1 - site.failures_per_s * run.lost_s) /
            (1 + site.failures_per_s * (site.outage_s + run.transfer_s));
  RandomEngine random = seeded_engine(1, 2);
  const Gap gap = [&](double per_s) {
    return per_s <= 0 ? kNever : -std::log((static_cast<double>(random() >> 11) + 0.5) * 0x1p-53) / per_s;
  };
  double sum = 0;
  for (int i = 0; i < 20; ++i) sum += finish_s(run, gap);
  CHECK(sum / 20 == doctest::Approx(run.work_s / rate).epsilon(0.001));
}

TEST_CASE("async_diloco and decoupled_diloco lose a failed site's share, diloco the time of all") {
  const auto goodput_of = [](const char* method) {
    Scenario scenario = tests::ideal_scenario(method, 4);
    Failures& failures = scenario.failures.emplace();
    failures.site_mtbf_s = 600;
    failures.restart_s = 120;
    failures.checkpoint_s = 1;
    failures.samples = 200;
    return closed_form(scenario).goodput.value();
  };
  const Goodput together = goodput_of("diloco"), alone = goodput_of("async_diloco");
  CHECK(!together.own_pace);
  CHECK(alone.own_pace);
  CHECK(1 - alone.goodput < (1 - together.goodput) / 2);
  CHECK(alone.checkpoint_rounds == 0);
  CHECK(goodput_of("decoupled_diloco").goodput == doctest::Approx(alone.goodput).epsilon(0.05));
}
