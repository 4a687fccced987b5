// Compares the closed form with the simulation if sites differ in GPUs, step times and parts of the batch.
#include <doctest/doctest.h>

#include <string>

#include "costmodel/compose/check.hpp"
#include "costmodel/formula/closed_form.hpp"
#include "costmodel/formula/resolved.hpp"
#include "costmodel/methods/all.hpp"
#include "costmodel/plan/method.hpp"
#include "costmodel/plan/site_shares.hpp"
#include "platforms/support/input_error.hpp"
#include "sim/executor/simulated_run.hpp"
#include "tests/differing_sites.hpp"

using namespace fomoe;
using costmodel::Scenario;
using tests::Draws;

TEST_CASE(
    "sites that differ in compute: the closed form is within 2 % of the simulation, or says it is not") {
  Draws draws(61);
  const auto& methods = costmodel::methods();
  int compared = 0;
  for (std::size_t i = 0; i < 5 * methods.size(); ++i) {
    const costmodel::Method& method = methods[i % methods.size()];
    CAPTURE(i);
    CAPTURE(method.name);
    Scenario scenario = tests::differing_scenario(method.name, 2 + draws.below(5), draws);
    scenario.platform = platforms::uniform(scenario.sites(), 1e8, 1e8, 0.02);
    if (i % 3 == 0) scenario.workload.batch_shares.clear();
    try {
      costmodel::check(scenario);
    } catch (const InputError&) {
      continue;  // not every method allows every number of sites
    }
    if (!costmodel::represents_sites(scenario, costmodel::resolve(scenario))) {
      CHECK(costmodel::closed_form(scenario).notes.back().find("for sites that differ") != std::string::npos);
      continue;
    }
    ++compared;
    const double simulated_s =
        sim::simulate_scenario(scenario, {.rounds = {}, .all_rounds = true}).report.wall_clock_s;
    CHECK(costmodel::closed_form(scenario).wall_clock_s == doctest::Approx(simulated_s).epsilon(0.02));
  }
  CHECK(compared > 20);
}

TEST_CASE("the simulated compute time of each site is that of its own GPUs and its part of the batch") {
  Draws draws(62);
  Scenario scenario = tests::differing_scenario("diloco", 5, draws);
  const costmodel::RunReport simulated =
      sim::simulate_scenario(scenario, {.rounds = {}, .all_rounds = true}).report;
  const costmodel::RunReport formula = costmodel::closed_form(scenario);
  for (std::size_t site = 0; site < 5; ++site)
    CHECK(simulated.sites[site].compute_s == doctest::Approx(formula.sites[site].compute_s).epsilon(1e-9));
  CHECK(simulated.efficiency.has_value() == formula.efficiency.has_value());
}

TEST_CASE("the site that computes longest decides the round, also if its steps are not the longest") {
  // The second site's steps are a little shorter, as in a batch balanced over GPUs, and its outer step is
  // not.
  Scenario scenario = tests::ideal_scenario("diloco", 2);
  for (const bool second : {false, true}) {
    costmodel::SiteCompute own;
    own.compute = costmodel::GivenStepTime{second ? 4.9999 : 5.0};
    own.gpus.memory_bytes_per_s = second ? 1e8 : 1e12;
    scenario.site_compute.push_back(own);
  }
  const costmodel::RunReport simulated =
      sim::simulate_scenario(scenario, {.rounds = {}, .all_rounds = true}).report;
  const costmodel::RunReport formula = costmodel::closed_form(scenario);
  CHECK(formula.wall_clock_s == doctest::Approx(simulated.wall_clock_s).epsilon(1e-9));
  for (std::size_t site = 0; site < 2; ++site) {
    CHECK(simulated.sites[site].compute_s == doctest::Approx(formula.sites[site].compute_s).epsilon(1e-9));
    CHECK(formula.sites[site].idle_s >= 0);
  }
  CHECK(formula.sites[1].compute_s > formula.sites[0].compute_s + 0.01);
}

TEST_CASE("asynchronous sites that drift against each other: the default executes what is cheap") {
  Scenario scenario = tests::ideal_scenario("async_diloco", 3);
  scenario.workload.tokens = 640LL * 3 * 10;  // 128 rounds
  for (const double seconds : {0.50, 0.51, 0.505})
    scenario.site_compute.push_back({costmodel::GivenStepTime{seconds}, {}, 0, {}, {}});
  scenario.platform = platforms::uniform(3, 2e8, 2e8, 0.02);
  const double all_s =
      sim::simulate_scenario(scenario, {.rounds = {}, .all_rounds = true}).report.wall_clock_s;
  CHECK(sim::simulate_scenario(scenario).report.wall_clock_s == doctest::Approx(all_s).epsilon(1e-9));
}

TEST_CASE("asynchronous sites with unequal parts of a batch drift too: the default executes what is cheap") {
  Scenario scenario = tests::ideal_scenario("async_diloco", 4);
  scenario.workload.global_batch_sequences = 6;
  scenario.workload.tokens = 500LL * 6 * 10;  // 100 rounds
  scenario.compute = costmodel::AssumedDevice{1e12, 0.4, 0};
  scenario.platform = platforms::uniform(4, 2e8, 2e8, 0.02);
  const double all_s =
      sim::simulate_scenario(scenario, {.rounds = {}, .all_rounds = true}).report.wall_clock_s;
  CHECK(sim::simulate_scenario(scenario).report.wall_clock_s == doctest::Approx(all_s).epsilon(1e-9));
}
