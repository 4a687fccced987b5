// Tests of runs whose sites fail so often that several are away at once.
#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "costmodel/math/random.hpp"
#include "costmodel/value/goodput.hpp"

using namespace fomoe;
using namespace fomoe::costmodel;

TEST_CASE(
    "policy drop: sites are there for the share of the time that their failures leave, and not longer") {
  // A site runs for 50 s on average, and is then away for 100 s.
  FaultyRun run;
  run.work_s = 2000;
  run.round_s = 20;
  run.sites = 16;
  run.site_failures_per_s = 0.02;
  run.outage_s = 100;
  run.interval_s = 100;
  run.timeout_s = 10;
  run.policy = FailurePolicy::drop;
  RandomEngine random = seeded_engine(1, 2);
  const Gap exponential = [&](double events_per_s) {
    if (events_per_s <= 0) return std::numeric_limits<double>::infinity();
    return -std::log((static_cast<double>(random() >> 11) + 0.5) * 0x1p-53) / events_per_s;
  };
  double sum_s = 0;
  constexpr int kRuns = 50;
  for (int i = 0; i < kRuns; ++i) sum_s += finish_s(run, exponential);
  const double goodput = run.work_s * kRuns / sum_s;
  CHECK(goodput < 50.0 / 150);
  CHECK(goodput > 0.15);
}
