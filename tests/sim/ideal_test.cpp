// The ideal case: equal sites, fluid links, no latency. Simulated and closed form are two computations of the
// same thing, one by events and one by formula, and must agree to 1e-9.
#include <doctest/doctest.h>

#include <cmath>

#include "costmodel/closed_form.hpp"
#include "sim/simulated_run.hpp"
#include "tests/scenarios.hpp"

using namespace fomoe;
using costmodel::Collective;

namespace {

void check_close(double value, double expected, double tolerance) {
  CHECK(std::abs(value - expected) <= tolerance * std::abs(expected));
}

void check_equal_reports(const costmodel::Scenario& scenario) {
  const costmodel::RunReport formula = costmodel::closed_form(scenario);
  const costmodel::RunReport simulated = sim::simulate_scenario(scenario).report;
  check_close(simulated.wall_clock_s, formula.wall_clock_s, 1e-9);
  check_close(simulated.round.communication_s, formula.round.communication_s, 1e-9);
  check_close(simulated.round.exposed_communication_s, formula.round.exposed_communication_s, 1e-9);
  check_close(simulated.compute_utilization, formula.compute_utilization, 1e-9);
  check_close(simulated.bytes_per_token, formula.bytes_per_token, 1e-12);
  check_close(simulated.bytes_sent_per_site_per_round, formula.bytes_sent_per_site_per_round, 1e-12);
}

}  // namespace

TEST_CASE("ideal: full-replica methods, simulated = closed form") {
  for (const char* method : {"ddp", "diloco", "local_adamw"}) {
    for (const int sites : {2, 4, 8}) {
      for (const Collective collective : {Collective::ring, Collective::direct}) {
        CAPTURE(method);
        CAPTURE(sites);
        costmodel::Scenario scenario = tests::ideal_scenario(method, sites);
        scenario.strategy.collective = collective;
        check_equal_reports(scenario);
      }
    }
  }
}

TEST_CASE("ideal: microseconds agree as well as hours, simulated = closed form") {
  // 8 sites at 100 TB/s: 14 steps of about a microsecond each, 1 µs of compute.
  costmodel::Scenario scenario = tests::ideal_scenario("ddp", 8);
  scenario.platform = platforms::uniform(8, 1e14, 1e14, 0);
  scenario.compute = costmodel::GivenStepTime{1e-6};
  check_equal_reports(scenario);
  scenario.platform = platforms::uniform(8, 1e3, 1e3, 0);
  scenario.compute = costmodel::GivenStepTime{1e5};
  check_equal_reports(scenario);
}

TEST_CASE("ideal: fomoe with fixed placement, every O_e that divides M, simulated = closed form") {
  for (const int sites : {2, 4, 8}) {
    for (int overlap = 1; overlap <= sites; overlap *= 2) {
      for (const Collective collective : {Collective::ring, Collective::direct}) {
        CAPTURE(sites);
        CAPTURE(overlap);
        costmodel::Scenario scenario = tests::ideal_scenario("fomoe", sites, overlap);
        scenario.strategy.collective = collective;
        check_equal_reports(scenario);
        scenario.strategy.skip_token = true;
        check_equal_reports(scenario);
      }
    }
  }
}
