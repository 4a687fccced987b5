// Compares predictions of measured runs with what the runs sent.
#include "experiments/analysis/measured_runs.hpp"

#include <doctest/doctest.h>

#include "tests/experiments/run_fomoe.hpp"

using namespace fomoe;
using namespace fomoe::tests;

TEST_CASE("runs that moved their experts after the last round too are predicted so: their bytes are equal") {
  const std::string runs = source_dir() + "/experiments/validation/runs/";
  for (const std::string name : {"fomoe-random-three-medium-k8-o1", "fomoe-random-four-medium-k8-ring-o2",
                                 "fomoe-random-far-medium-k16-o1", "fomoe-fixed-four-medium-k8-o1"}) {
    CAPTURE(name);
    const commands::ReadRun run = commands::read_runs({runs + name + ".json"}).front();
    CHECK(commands::predict(run).bytes_sent_per_site_per_round ==
          run.measured.report.bytes_sent_per_site_per_round);
    if (run.scenario.strategy.placement == costmodel::PlacementKind::fixed) continue;
    // The plan of today moves no experts after the last round.
    CHECK(commands::predict(run.scenario).bytes_sent_per_site_per_round <
          run.measured.report.bytes_sent_per_site_per_round);
  }
}

TEST_CASE("a measured run is predicted with the order of its ring, which another version may not choose") {
  const std::string path =
      source_dir() + "/experiments/validation/blind-4/several-20261128-51-sparse_loco.json";
  const commands::ReadRun run = commands::read_runs({path}).front();
  // This version weighs latencies less, since payloads are not divided among the sites.
  CHECK(run.scenario.strategy.ring_of_run == std::vector<int>{0, 2, 1, 3, 4});
  const auto wall_clock_s = [&](std::vector<int> ring) {
    costmodel::Scenario scenario = run.scenario;
    scenario.strategy.ring_of_run = std::move(ring);
    return commands::predict(scenario).wall_clock_s;
  };
  CHECK(wall_clock_s({}) < 0.95 * wall_clock_s({0, 2, 1, 3, 4}));
  CHECK(commands::predict(run).wall_clock_s == wall_clock_s({0, 2, 1, 3, 4}));
}
