// Every method, in the ideal case (equal sites, fluid links, no latency, everything divides): simulated and closed
// form agree to 1e-9. A new method is held to this as soon as it is in the list.
#include <doctest/doctest.h>

#include <cmath>
#include <map>

#include "costmodel/closed_form.hpp"
#include "sim/simulated_run.hpp"
#include "tests/scenarios.hpp"

using namespace fomoe;
using costmodel::Collective;
using costmodel::RunReport;

namespace {

// Methods whose closed form is no equality in the ideal case, and why. Byte counts must agree even so.
const std::map<std::string, std::string, std::less<>> kOnlyApproximate = {};

bool close(double value, double expected, double tolerance) {
  return std::abs(value - expected) <= tolerance * std::abs(expected) + 1e-300;
}

void check_equal(const costmodel::Scenario& scenario) {
  const RunReport formula = costmodel::closed_form(scenario);
  const RunReport simulated = sim::simulate_scenario(scenario).report;
  CAPTURE(scenario.strategy.method);
  CAPTURE(scenario.sites());
  CAPTURE(scenario.strategy.expert_overlap);
  CAPTURE(costmodel::to_string(scenario.strategy.collective));
  CHECK(close(simulated.bytes_per_token, formula.bytes_per_token, 1e-12));
  CHECK(close(simulated.bytes_sent_per_site_per_round, formula.bytes_sent_per_site_per_round, 1e-12));
  if (kOnlyApproximate.contains(scenario.strategy.method)) return;
  CHECK(close(simulated.wall_clock_s, formula.wall_clock_s, 1e-9));
  CHECK(close(simulated.round.communication_s, formula.round.communication_s, 1e-9));
  CHECK(close(simulated.round.exposed_communication_s, formula.round.exposed_communication_s, 1e-9));
  CHECK(close(simulated.compute_utilization, formula.compute_utilization, 1e-9));
}

}  // namespace

TEST_CASE("ideal: every method of the list, simulated = closed form") {
  for (const costmodel::Method& method : costmodel::methods()) {
    for (const int sites : {2, 4, 8}) {
      for (int overlap = method.partial_experts ? 1 : sites; overlap <= sites; overlap *= 2) {
        for (const Collective collective : {Collective::ring, Collective::direct}) {
          costmodel::Scenario scenario =
              tests::every_axis_scenario(std::string(method.name), sites, overlap);
          scenario.strategy.collective = collective;
          check_equal(scenario);
        }
      }
    }
  }
}

TEST_CASE("ideal: every method on links so fast that whatever can hide does") {
  for (const costmodel::Method& method : costmodel::methods()) {
    costmodel::Scenario scenario = tests::every_axis_scenario(std::string(method.name), 4);
    scenario.platform = platforms::uniform(4, 1e13, 1e13, 0);
    check_equal(scenario);
  }
}

TEST_CASE("ideal: every number format, dense and sparse, simulated = closed form") {
  using costmodel::ElementType;
  for (const char* method : {"ddp", "diloco", "fomoe", "diloco_x", "streaming_diloco"}) {
    for (const ElementType type : {ElementType::fp32, ElementType::fp8, ElementType::int8, ElementType::int4,
                                   ElementType::int2}) {
      costmodel::Scenario scenario = tests::every_axis_scenario(method, 4, 2);
      scenario.strategy.wire = costmodel::plain_format(type);
      check_equal(scenario);
      scenario.strategy.wire = costmodel::top_k_format(type, 64.0 / 4096, 12);
      check_equal(scenario);
    }
  }
}
