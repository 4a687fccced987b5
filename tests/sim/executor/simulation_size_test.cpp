// Tests that the flows of a simulation are counted before it begins, and that too many are refused.
#include "sim/executor/simulation_size.hpp"

#include <doctest/doctest.h>

#include "platforms/support/input_error.hpp"
#include "sim/executor/simulated_run.hpp"
#include "tests/scenarios.hpp"

using namespace fomoe;
using costmodel::Collective;
using costmodel::Scenario;

namespace {

/// The flows that are counted for two rounds, and those that two rounds have.
std::pair<double, double> counted_and_simulated(const Scenario& scenario, double& at_once) {
  sim::RunOptions options;
  options.rounds = 2;
  options.record_flows = true;
  double counted = -1;
  options.on_size = [&](const sim::SimulationSize& size) {
    counted = size.flows;
    at_once = size.at_once;
  };
  const sim::SimulatedRun run = sim::simulate_scenario(scenario, options);
  return {counted, static_cast<double>(run.timeline.flow_records.size())};
}

}  // namespace

TEST_CASE("the counted flows are those of the simulation, for rings, direct exchanges and buckets") {
  for (const Collective collective : {Collective::ring, Collective::direct}) {
    for (const std::int64_t bucket_bytes : {0, 200'000}) {
      for (const std::string method : {"diloco", "ddp", "local_adamw"}) {
        CAPTURE(method);
        CAPTURE(to_string(collective));
        CAPTURE(bucket_bytes);
        Scenario scenario = tests::ideal_scenario(method, 5);
        scenario.strategy.collective = collective;
        scenario.strategy.bucket_bytes = bucket_bytes;
        double at_once = 0;
        const auto [counted, simulated] = counted_and_simulated(scenario, at_once);
        CHECK(counted == simulated);
        CHECK(at_once == (collective == Collective::ring ? 5 : 20));
      }
    }
  }
}

TEST_CASE("a simulation with tens of millions of flows in a round is refused with what is smaller") {
  Scenario scenario = tests::ideal_scenario("diloco", 8);
  scenario.strategy.collective = Collective::ring;
  scenario.strategy.bucket_bytes = 8;
  try {
    (void)sim::simulate_scenario(scenario);
    FAIL("a round of far too many flows was simulated");
  } catch (const InputError& error) {
    const std::string text = error.what();
    CAPTURE(text);
    CHECK(text.find("strategy.bucket_bytes") != std::string::npos);
    CHECK(text.find("million flows in a round") != std::string::npos);
    CHECK(text.find("25MB") != std::string::npos);
  }
}
