// Tests that a report states the origin of each input and of each number that follows from the inputs: one
// line for each, no line for what a scenario does not have.
#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "costmodel/formula/closed_form.hpp"
#include "costmodel/methods/all.hpp"
#include "tests/scenarios.hpp"

using namespace fomoe;
using namespace fomoe::costmodel;

namespace {

using Rows = std::vector<std::pair<std::string, Origin>>;
using enum Origin;

Rows rows_of(const Scenario& scenario) {
  Rows rows;
  for (const Provenance& row : closed_form(scenario).provenance) rows.emplace_back(row.what, row.origin);
  return rows;
}

/// The text of the only line about a quantity.
std::string text_of(const Scenario& scenario, const std::string& what) {
  const std::vector<Provenance> rows = closed_form(scenario).provenance;
  const auto is_it = [&](const Provenance& row) { return row.what == what; };
  CAPTURE(what);
  CHECK(std::count_if(rows.begin(), rows.end(), is_it) == 1);
  const auto found = std::find_if(rows.begin(), rows.end(), is_it);
  return found == rows.end() ? "" : found->detail;
}

/// The lines beside those of a plain scenario.
Rows added_to(const Scenario& plain, const Scenario& scenario) {
  Rows more = rows_of(scenario);
  for (const auto& row : rows_of(plain)) {
    const auto found = std::find(more.begin(), more.end(), row);
    REQUIRE(found != more.end());
    more.erase(found);
  }
  return more;
}

}  // namespace

TEST_CASE("provenance of a plain scenario: what is given, what is assumed, what is computed") {
  const Scenario scenario = tests::ideal_scenario("diloco", 2);
  CHECK(rows_of(scenario) == Rows{{"step time", assumed},
                                  {"outer step time", assumed},
                                  {"bandwidth efficiency", assumed},
                                  {"bytes sent", computed},
                                  {"memory", computed}});
  CHECK(text_of(scenario, "step time") == "given in the scenario");
  CHECK(text_of(scenario, "outer step time") == "0 s, because compute.memory_bandwidth is not given");
  CHECK(text_of(scenario, "bandwidth efficiency") == "1: payload uses the whole rate of every link");
  CHECK(text_of(scenario, "bytes sent") == "from the model's shape and the plan");
  CHECK(text_of(scenario, "memory") ==
        "18 B per parameter plus the outer state; activations are not included, because "
        "compute.micro_batch_sequences is not given");
}

TEST_CASE("provenance: every method states step time, links, bytes and memory once") {
  for (const Method& method : methods()) {
    CAPTURE(method.name);
    const Rows rows = rows_of(tests::every_axis_scenario(std::string(method.name), 2));
    for (const char* what : {"step time", "bandwidth efficiency", "bytes sent", "memory"})
      CHECK(std::count_if(rows.begin(), rows.end(), [&](const auto& row) { return row.first == what; }) == 1);
  }
}

TEST_CASE("provenance: memory names where the outer state is, the GPUs and the activations") {
  Scenario scenario = tests::ideal_scenario("diloco", 2);
  scenario.gpus.count = 4;
  scenario.gpus.micro_batch_sequences = 3;
  scenario.workload.global_batch_sequences = 24;
  CHECK(
      text_of(scenario, "memory") ==
      "18 B per parameter plus the outer state, distributed over the 4 GPUs of a site; plus the activations "
      "of micro-batches of 3 sequences");
  CHECK(text_of(scenario, "step time") == "given in the scenario for all GPUs of a site together");
  scenario.gpus.outer_state_on = OuterStateOn::host;
  CHECK(text_of(scenario, "memory").starts_with("18 B per parameter; the outer state is in host memory"));
}

TEST_CASE("provenance: each term of the network model that is on has a line, fitted or assumed") {
  const Scenario plain = tests::ideal_scenario("diloco", 2);
  Scenario scenario = plain;
  scenario.network.latency_factor = 2;
  CHECK(added_to(plain, scenario) == Rows{{"network model", assumed}});
  scenario.network.jitter_s = 0.25;
  scenario.network.call_overhead_s = 0.5;
  scenario.network.tcp_window_bytes = 1e6;
  CHECK(added_to(plain, scenario) == Rows(4, {"network model", assumed}));
  scenario.network.calibrated = {"jitter", "bandwidth_efficiency"};
  scenario.network.calibration = "links.json";
  scenario.network.bandwidth_efficiency = 0.5;
  const Rows rows = rows_of(scenario);
  CHECK(std::count(rows.begin(), rows.end(), std::pair<std::string, Origin>("network model", assumed)) == 3);
  CHECK(std::count(rows.begin(), rows.end(), std::pair<std::string, Origin>("network model", calibrated)) ==
        1);
  CHECK(text_of(scenario, "bandwidth efficiency") ==
        "payload uses 0.5 of the rate of every link; fitted: links.json");
}

TEST_CASE("provenance: steps that vary, given or from measured samples") {
  const Scenario plain = tests::ideal_scenario("diloco", 2);
  Scenario scenario = plain;
  scenario.variation.coefficient = 0.25;
  CHECK(added_to(plain, scenario) == Rows{{"step time variation", assumed}});
}

TEST_CASE("provenance: power, platform and failures add their lines") {
  const Scenario plain = tests::ideal_scenario("diloco", 2);
  Scenario scenario = plain;
  scenario.power = GpuPower{700, 0.2, 1.25};
  CHECK(added_to(plain, scenario) == Rows{{"energy", computed}});
  scenario = plain;
  scenario.platform.provenance = {{"path rates", measured, "iperf3"}};
  CHECK(added_to(plain, scenario) == Rows{{"path rates", measured}});
  CHECK(text_of(scenario, "path rates") == "iperf3");
  scenario = plain;
  scenario.failures = Failures{};
  scenario.failures->site_mtbf_s = 1e6;
  scenario.failures->samples = 10;
  scenario.failures->checkpoint_s = 1;
  CHECK(added_to(plain, scenario) ==
        Rows{{"failures", assumed}, {"checkpoint interval", computed}, {"checkpoint time", assumed}});
  scenario.failures->checkpoint_s.reset();
  scenario.failures->storage_bytes_per_s = 1e9;
  CHECK(added_to(plain, scenario) ==
        Rows{{"failures", assumed}, {"checkpoint interval", computed}, {"checkpoint time", computed}});
}
