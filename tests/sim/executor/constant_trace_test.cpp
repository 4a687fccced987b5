// A trace whose changes change nothing: rounds that are sampled at several times of the trace must give what
// a run without a trace gives, so that each round counts once, also the first one.
#include <doctest/doctest.h>

#include <string>

#include "sim/executor/simulated_run.hpp"
#include "tests/scenarios.hpp"
#include "tests/sim/transfers.hpp"

using namespace fomoe;
using costmodel::RunReport;
using costmodel::Scenario;
using platforms::LinkChange;
using tests::rate_change;

namespace {

/// The rate of an uplink "changes" four times in `trace_s`, each time to what it is.
void add_trace(Scenario& scenario, double trace_s, bool repeats) {
  for (int i = 0; i < 4; ++i)
    scenario.platform.changes.push_back(rate_change(LinkChange::Link::uplink, 0, 0, trace_s * (i + 1) / 5,
                                                    scenario.platform.sites[0].uplink_bytes_per_s));
  if (repeats) scenario.platform.changes_period_s = trace_s;
}

void check_same(const RunReport& sampled, const RunReport& all, double tolerance) {
  CHECK(sampled.wall_clock_s == doctest::Approx(all.wall_clock_s).epsilon(tolerance));
  CHECK(sampled.round.duration_s == doctest::Approx(all.round.duration_s).epsilon(tolerance));
  CHECK(sampled.round.communication_s == doctest::Approx(all.round.communication_s).epsilon(tolerance));
  CHECK(sampled.round.transferring_s == doctest::Approx(all.round.transferring_s).epsilon(tolerance));
  CHECK(sampled.compute_utilization == doctest::Approx(all.compute_utilization).epsilon(tolerance));
  CHECK(sampled.bytes_sent_per_site_per_round ==
        doctest::Approx(all.bytes_sent_per_site_per_round).epsilon(tolerance));
  CHECK(sampled.tokens == all.tokens);
  for (std::size_t site = 0; site < all.sites.size(); ++site) {
    CHECK(sampled.sites[site].bytes_received ==
          doctest::Approx(all.sites[site].bytes_received).epsilon(tolerance));
    CHECK(sampled.sites[site].compute_s == doctest::Approx(all.sites[site].compute_s).epsilon(tolerance));
  }
}

}  // namespace

TEST_CASE("a trace that changes nothing: few rounds at some times give the wall clock of all, by hand") {
  // Rounds of 5 s of steps and an all-reduce of S bytes each way at 1 GB/s among two sites.
  for (const bool repeats : {false, true}) {
    for (const int rounds : {2, 3, 12, 100}) {
      CAPTURE(repeats);
      CAPTURE(rounds);
      Scenario scenario = tests::ideal_scenario("local_sgd", 2);
      scenario.workload.tokens = rounds * 5LL * 2 * 10;
      const double bytes = 2.0 * static_cast<double>(costmodel::count_parameters(scenario.model).total());
      const double round_s = 5 + bytes / 1e9;
      add_trace(scenario, 0.7 * rounds * round_s, repeats);
      const RunReport report = sim::simulate_scenario(scenario, {.rounds = 2}).report;
      REQUIRE(report.notes.back().find("because the links change") != std::string::npos);
      CHECK(report.wall_clock_s == doctest::Approx(rounds * round_s).epsilon(1e-9));
      CHECK(report.sites[0].bytes_sent == doctest::Approx(rounds * bytes).epsilon(1e-9));
      CHECK(report.sites[1].compute_s == doctest::Approx(5).epsilon(1e-9));  // of the mean round
      CHECK(report.round.communication_s == doctest::Approx(bytes / 1e9).epsilon(1e-9));
    }
  }
}

TEST_CASE("a trace that changes nothing: methods with several kinds of rounds, and with overlapping ones") {
  for (const char* method : {"ddp", "diloco", "fomoe", "des_loc", "demo"}) {
    for (const bool repeats : {false, true}) {
      CAPTURE(method);
      CAPTURE(repeats);
      Scenario scenario = tests::every_axis_scenario(method, 4);
      scenario.workload.tokens = 240LL * 4 * 10;
      const RunReport all = sim::simulate_scenario(scenario, {.rounds = {}, .all_rounds = true}).report;
      add_trace(scenario, 0.4 * all.wall_clock_s, repeats);
      check_same(sim::simulate_scenario(scenario, {.rounds = 8}).report, all, 1e-9);
    }
  }
}

TEST_CASE("a trace that changes nothing: the slow start of the first round counts once") {
  Scenario scenario = tests::ideal_scenario("local_sgd", 2);
  scenario.workload.tokens = 20LL * 5 * 2 * 10;
  scenario.platform = platforms::uniform(2, 1e8, 1e8, 0.1);
  const double warm_s =
      sim::simulate_scenario(scenario, {.rounds = {}, .all_rounds = true}).report.wall_clock_s;
  scenario.network.initial_window_bytes = 1000;
  const RunReport all = sim::simulate_scenario(scenario, {.rounds = {}, .all_rounds = true}).report;
  REQUIRE(all.wall_clock_s > warm_s + 0.5);
  add_trace(scenario, 0.4 * all.wall_clock_s, false);
  const RunReport sampled = sim::simulate_scenario(scenario, {.rounds = 8}).report;
  // Small delays differ from run to run; counted twice, it would be twice as long.
  CHECK(sampled.wall_clock_s - warm_s == doctest::Approx(all.wall_clock_s - warm_s).epsilon(0.1));
}
