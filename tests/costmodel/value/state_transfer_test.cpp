// Tests how long a site that comes back fetches the training state, and what is lost where nobody else has
// it.
#include <doctest/doctest.h>

#include "costmodel/compose/extra_traffic.hpp"
#include "costmodel/counts/memory.hpp"
#include "costmodel/formula/closed_form.hpp"
#include "costmodel/value/goodput.hpp"
#include "tests/costmodel/value/failing_run.hpp"
#include "tests/scenarios.hpp"

namespace {

using namespace fomoe;
using namespace fomoe::costmodel;

Scenario with_failures(const char* method) {
  Scenario scenario = tests::ideal_scenario(method, 4);
  scenario.platform = platforms::uniform(4, 1e9, 1e9, 0.05);
  scenario.failures = Failures{};
  scenario.failures->checkpoint_s = 0;
  scenario.failures->policy = FailurePolicy::drop;
  scenario.failures->samples = 10;
  return scenario;
}

double transfer_s(const Scenario& scenario) { return closed_form(scenario).goodput->transfer_s; }

}  // namespace

TEST_CASE("the state is fetched over connections, with their buffers, number and measured rates") {
  Scenario scenario = with_failures("diloco");
  const double state_bytes = state_bytes_per_site(scenario);
  CHECK(transfer_s(scenario) == doctest::Approx(0.05 + state_bytes / 1e9));
  scenario.network.send_buffer_bytes = 3e6;  // 2 MB in flight each 0.1 s
  CHECK(transfer_s(scenario) == doctest::Approx(0.05 + state_bytes / 2e7));
  scenario.network.streams = 3;
  CHECK(transfer_s(scenario) == doctest::Approx(0.05 + state_bytes / 6e7));
  scenario.platform.shared_links = {{"line", 1e6}};
  scenario.platform.shared_links[0].per_flow = true;
  for (int to = 1; to < 4; ++to) scenario.platform.share(0, to, {0});  // other sources are faster
  CHECK(transfer_s(scenario) == doctest::Approx(0.05 + state_bytes / 6e7));
  for (int from = 1; from < 4; ++from)
    for (int to = 0; to < 4; ++to)
      if (from != to) scenario.platform.share(from, to, {0});
  CHECK(transfer_s(scenario) == doctest::Approx(0.05 + state_bytes / 3e6));
}

TEST_CASE("where no other site has the state, nothing is fetched; one site alone uses no links") {
  for (const char* method : {"centralised", "fsdp", "pipeline_wan"}) {
    CAPTURE(method);
    CHECK(transfer_s(with_failures(method)) == 0);
  }
  Scenario scenario = with_failures("centralised");
  const double without_s = closed_form(scenario).goodput->finish_p95_s;
  scenario.failures->link_mtbf_s = without_s / 100;
  scenario.failures->link_repair_s = 10;
  CHECK(closed_form(scenario).goodput->finish_p95_s == without_s);
}

TEST_CASE("policy drop: the only site loses what it did since its checkpoint") {
  FaultyRun run;
  run.work_s = 100;
  run.round_s = 10;
  run.sites = 1;
  run.site_failures_per_s = 0.001;
  run.outage_s = 5;
  run.interval_s = 30;
  run.policy = FailurePolicy::drop;
  run.timeout_s = 40;
  // It fails at 57 s, is back at 62 s, and goes on from the checkpoint after 30 s of work.
  CHECK(finish_s(run, tests::gaps({57})) == doctest::Approx(62 + 70));
}

TEST_CASE("the training state has the moments in their format, and as many as the method keeps") {
  const auto of_parameter = [](const Scenario& one) {
    return state_bytes_per_site(one) / static_cast<double>(parameters_per_site(one));
  };
  Scenario scenario = tests::ideal_scenario("diloco", 4);
  CHECK(of_parameter(scenario) == 4 + 8 + 8);
  scenario.gpus.moment_dtype = StateDtype::bf16;
  CHECK(of_parameter(scenario) == 4 + 4 + 8);
  const Scenario demo = tests::ideal_scenario("demo", 4);
  const double outer = outer_bytes_per_parameter(*demo.strategy.method, demo.strategy.outer_optimizer);
  CHECK(of_parameter(demo) == 4 + 4 + outer);
}
