// Tests of replicas: simulations of consecutive seeds, each in a process of its own.
#include "sim/executor/replicas.hpp"

#include <doctest/doctest.h>

#include "tests/scenarios.hpp"

using namespace fomoe;
using costmodel::RunReport;

namespace {

/// A simulation whose answer depends on the seed alone: 10 · seed seconds, and a utilisation of 1 ÷ seed.
RunReport by_seed(const costmodel::Scenario& scenario) {
  RunReport report;
  report.wall_clock_s = 10 * static_cast<double>(scenario.seed);
  report.compute_utilization = 1 / static_cast<double>(scenario.seed);
  return report;
}

}  // namespace

TEST_CASE("replicas: each consecutive seed is simulated once, however many run at a time") {
  costmodel::Scenario scenario = tests::ideal_scenario("diloco", 2);
  scenario.seed = 3;
  for (const int count : {2, 3, 9}) {
    CAPTURE(count);
    RunReport report = by_seed(scenario);
    sim::add_replicas(report, scenario, by_seed, count);
    REQUIRE(report.replicas);
    CHECK(report.replicas->count == count);
    CHECK(report.replicas->first_seed == 3);
    double utilisation = 0;
    for (int seed = 3; seed < 3 + count; ++seed) utilisation += 1.0 / seed;
    CHECK(report.replicas->wall_clock_s.mean == doctest::Approx(10 * (3 + (count - 1) / 2.0)).epsilon(1e-12));
    CHECK(report.replicas->compute_utilization.mean == doctest::Approx(utilisation / count).epsilon(1e-12));
    CHECK(report.notes.empty());
    CHECK(report.wall_clock_s == 30);  // the answer itself is the first seed's
  }
}

TEST_CASE("replicas that all take the same time are explained, and one that differs is enough not to be") {
  const costmodel::Scenario scenario = tests::ideal_scenario("diloco", 2);
  for (const bool differs : {false, true}) {
    const auto simulate = [&](const costmodel::Scenario& seeded) {
      RunReport report;
      report.wall_clock_s = differs && seeded.seed == scenario.seed + 3 ? 7 : 5;
      report.compute_utilization = 0.5;
      return report;
    };
    RunReport report = simulate(scenario);
    sim::add_replicas(report, scenario, simulate, 5);
    CHECK(report.notes.empty() == differs);
    CHECK(report.replicas->wall_clock_s.mean == (differs ? 5.4 : 5.0));
  }
}
