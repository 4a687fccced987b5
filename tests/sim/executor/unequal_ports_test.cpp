// Tests of the closed form where uplinks and downlinks have unequal rates: it is exact, or says that it is
// not.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "costmodel/formula/resolved.hpp"
#include "tests/draws.hpp"
#include "tests/scenarios.hpp"
#include "tests/sim/executor/simulated.hpp"

using namespace fomoe;
using costmodel::Scenario;
using tests::Draws;

namespace {

constexpr double kOfWholeBytes = 1e-6;  // payloads and activations are whole bytes and elements

double error_of_closed_form(const Scenario& scenario) {
  return std::abs(
      costmodel::resolve(scenario).wall_clock_s() / tests::simulated_wholly(scenario).wall_clock_s - 1);
}

bool is_exact(const Scenario& scenario) { return !costmodel::approximates(costmodel::resolve(scenario)); }

/// A few steps of `sites` equal sites, which take about as long as the transfers.
Scenario drawn_scenario(const std::string& method, int sites, double uplink_share, Draws& draws) {
  Scenario scenario = tests::every_axis_scenario(method, sites);
  scenario.model.experts = 2 * sites;
  scenario.model.sequence_length = 1000;
  if (scenario.strategy.method->inside_step != nullptr)
    scenario.model.d_model = 1024;  // most bytes are activations
  scenario.workload.global_batch_sequences = 2 * sites;
  scenario.workload.tokens = 2 * scenario.strategy.local_steps * 2 * sites * scenario.model.sequence_length;
  const auto parameters = static_cast<double>(costmodel::count_parameters(scenario.model).total());
  const double bytes_per_s = 2 * parameters / draws.between(0.2, 2);
  scenario.platform =
      platforms::uniform(sites, uplink_share * bytes_per_s, bytes_per_s, draws.between(0.1, 0.3));
  return scenario;
}

}  // namespace

TEST_CASE("experts with unequal loads: the closed form is exact if uplinks are as fast as downlinks") {
  Draws draws(29);
  double worst = 0;
  for (const std::string method : {"expert_parallel_wan", "remote_experts"}) {
    for (const double uplink_share : {1.0, 0.3, 1.0, 0.8, 1.0, 4.0, 1.0, 1.5}) {
      Scenario scenario = drawn_scenario(method, 3 + draws.below(4), uplink_share, draws);
      costmodel::RoutingCounts& counts = scenario.strategy.routing_counts;
      counts = costmodel::make_routing_counts(static_cast<int>(costmodel::moe_layers(scenario.model)),
                                              static_cast<int>(scenario.model.experts), scenario.sites());
      for (int layer = 0; layer < counts.layers; ++layer) {
        for (int expert = 0; expert < counts.experts; ++expert)
          counts.at(layer, expert, 0) = 1 + draws.below(200);
      }
      CAPTURE(method);
      CAPTURE(uplink_share);
      CHECK(is_exact(scenario) == (uplink_share == 1));
      const double error = error_of_closed_form(scenario);
      if (uplink_share == 1) CHECK(error < kOfWholeBytes);
      worst = std::max(worst, error);
      // Equal loads need no equal ports.
      counts = {};
      CHECK(is_exact(scenario));
      CHECK(error_of_closed_form(scenario) < kOfWholeBytes);
    }
  }
  CHECK(worst > 0.02);  // else it need not say that it approximates
}

TEST_CASE(
    "a slow site in direct exchanges: the closed form is exact unless downlinks are slower than uplinks") {
  Draws draws(30);
  double worst = 0;
  for (const std::string method : {"diloco", "demo", "sparse_loco", "ddp"}) {
    for (const double uplink_share : {1.0, 0.3, 0.9, 1.2, 4.0}) {
      Scenario scenario = drawn_scenario(method, 3 + draws.below(4), uplink_share, draws);
      scenario.strategy.collective = costmodel::Collective::direct;
      scenario.strategy.fragments = 1;
      scenario.platform.sites.back().compute_factor = draws.between(1.5, 3);
      CAPTURE(method);
      CAPTURE(uplink_share);
      CHECK(is_exact(scenario) == (uplink_share <= 1));
      const double error = error_of_closed_form(scenario);
      if (uplink_share <= 1) CHECK(error < kOfWholeBytes);
      worst = std::max(worst, error);
      // A ring may have slower downlinks.
      scenario.strategy.collective = costmodel::Collective::ring;
      CHECK(is_exact(scenario));
      CHECK(error_of_closed_form(scenario) < kOfWholeBytes);
    }
  }
  CHECK(worst > 0.02);
}
