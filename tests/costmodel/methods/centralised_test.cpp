// Tests of the centralised baseline: one site computes everything and no bytes are sent.
#include <doctest/doctest.h>

#include "costmodel/compute/compute_times.hpp"
#include "costmodel/counts/memory.hpp"
#include "costmodel/formula/closed_form.hpp"
#include "costmodel/plan/method.hpp"
#include "tests/plan_bytes.hpp"
#include "tests/scenarios.hpp"

using namespace fomoe;
using namespace fomoe::costmodel;

TEST_CASE("centralised: the first site trains on the whole global batch, and nothing crosses the WAN") {
  Scenario scenario = tests::ideal_scenario("centralised", 4);
  scenario.workload.global_batch_sequences = 12;
  scenario.compute = AssumedDevice{1e12, 0.5};
  const Plan plan = tests::plan_of(scenario);
  REQUIRE(plan.nodes.size() == 1);
  CHECK(plan.nodes[0].site == 0);
  CHECK(plan.nodes[0].sequences == 12);  // the whole batch, not 12/4
  CHECK(tests::sent_in_mean_round(plan, 4).total() == 0);

  const RunReport report = closed_form(scenario);
  const double step_s = compute_times(scenario, 12).step_s();
  CHECK(report.wall_clock_s == doctest::Approx(static_cast<double>(plan.steps) * step_s).epsilon(1e-12));
  CHECK(report.compute_utilization == doctest::Approx(1.0 / 4).epsilon(1e-12));  // three of four sites idle
  CHECK(report.bytes_per_token == 0);
  CHECK(report.sites[0].memory_bytes > 0);
  CHECK(report.sites[1].memory_bytes == 0);
}

TEST_CASE("centralised: only the site that trains is paid for, and only it can fail") {
  Scenario scenario = tests::ideal_scenario("centralised", 4);
  scenario.workload.global_batch_sequences = 12;
  scenario.compute = AssumedDevice{1e12, 0.5};
  scenario.gpus.count = 2;
  scenario.prices =
      Prices{"USD",
             "",
             {{{}, 3, 0, 0, {}, {}}, {{}, 5, 0, 0, {}, {}}, {{}, 5, 0, 0, {}, {}}, {{}, 5, 0, 0, {}, {}}},
             {}};
  scenario.power = GpuPower{700, 0.2, 1};
  scenario.failures = Failures{};
  scenario.failures->site_mtbf_s = 1000;
  scenario.failures->checkpoint_s = 1;
  const RunReport report = closed_form(scenario);
  CHECK(report.cost->cost_total == doctest::Approx(2 * 3 * report.wall_clock_s).epsilon(1e-12));
  CHECK(*report.cost->energy_kwh == doctest::Approx(2 * 700 * report.wall_clock_s / 3.6e6).epsilon(1e-12));
  CHECK(report.goodput->system_mtbf_s == doctest::Approx(1000));
}
