// Tests traffic besides the synchronisation (data and checkpoints): the simulation agrees with the closed
// form.
#include "costmodel/compose/extra_traffic.hpp"

#include <doctest/doctest.h>

#include <cmath>

#include "costmodel/formula/closed_form.hpp"
#include "sim/executor/simulated_run.hpp"
#include "tests/scenarios.hpp"

using namespace fomoe;

namespace {

void check_traffic(const costmodel::Scenario& scenario) {
  const costmodel::RunReport formula = costmodel::closed_form(scenario);
  const costmodel::RunReport simulated = sim::simulate_scenario(scenario).report;
  CHECK(simulated.wall_clock_s == doctest::Approx(formula.wall_clock_s).epsilon(1e-9));
  // Chunks are whole bytes.
  CHECK(simulated.bytes_per_token == doctest::Approx(formula.bytes_per_token).epsilon(1e-7));
}

}  // namespace

TEST_CASE(
    "extra traffic: data and checkpoints that fit into the compute cost no time, and their bytes are "
    "counted") {
  for (const int data_site : {0, 1}) {
    costmodel::Scenario scenario = tests::ideal_scenario("diloco", 4);
    const double without_s = costmodel::closed_form(scenario).wall_clock_s;
    scenario.traffic.data_site = data_site;
    scenario.traffic.data_bytes_per_token = 1e6;  // 3 · 50 MB in a round of 5 s at 1 GB/s
    scenario.traffic.checkpoint_site = 0;
    scenario.traffic.checkpoint_rounds = 5;  // three uploads of about 1.5 GB
    check_traffic(scenario);
    CHECK(sim::simulate_scenario(scenario).report.wall_clock_s == doctest::Approx(without_s).epsilon(1e-9));
  }
}

TEST_CASE("extra traffic: a site that rejoins delays all others by state ÷ bandwidth") {
  costmodel::Scenario scenario = tests::ideal_scenario("diloco", 4);
  scenario.traffic.rejoin_site = 2;
  scenario.traffic.rejoin_rounds = 4;
  check_traffic(scenario);
}

TEST_CASE("extra traffic: data that a slow uplink cannot deliver in time makes the run longer") {
  costmodel::Scenario scenario = tests::ideal_scenario("diloco", 4);
  const double without_s = costmodel::closed_form(scenario).wall_clock_s;
  scenario.traffic.data_site = 0;
  scenario.traffic.data_bytes_per_token = 1e8;  // 3 · 5 GB through one uplink of 1 GB/s in a round of 5 s
  const double formula_s = costmodel::closed_form(scenario).wall_clock_s;
  const double simulated_s = sim::simulate_scenario(scenario).report.wall_clock_s;
  CHECK(without_s < 100);
  CHECK(simulated_s >= 12 * 15.0);
  // The formula hides data transfers behind computation only. The simulation also hides them behind the
  // synchronisation of other sites.
  CHECK(simulated_s <= formula_s * (1 + 1e-9));
  CHECK(formula_s == doctest::Approx(without_s + 12 * (15 - 5.0)).epsilon(1e-9));
}

TEST_CASE("extra traffic: a site that keeps a part of the model uploads the state of that part") {
  for (const char* method : {"fsdp", "expert_parallel_wan"}) {
    costmodel::Scenario scenario = tests::ideal_scenario(method, 4);
    scenario.traffic.checkpoint_site = 0;
    CAPTURE(method);
    const costmodel::RunReport formula = costmodel::closed_form(scenario);
    const costmodel::RunReport simulated = sim::simulate_scenario(scenario).report;
    scenario.traffic.checkpoint_site.reset();
    const double of_method = costmodel::closed_form(scenario).bytes_sent_per_site_per_round;
    const double uploaded = costmodel::state_bytes_per_site(scenario) * 3 / 4;
    CHECK(formula.bytes_sent_per_site_per_round - of_method == doctest::Approx(uploaded));
    CHECK(simulated.bytes_sent_per_site_per_round - of_method == doctest::Approx(uploaded).epsilon(1e-6));
  }
}
