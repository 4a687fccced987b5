// Tests properties that hold for every scenario, with random methods, sites, links, latencies and
// collectives.
#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <cmath>
#include <vector>

#include "costmodel/compose/composition.hpp"
#include "costmodel/formula/closed_form.hpp"
#include "costmodel/methods/all.hpp"
#include "costmodel/plan/method.hpp"
#include "platforms/support/input_error.hpp"
#include "sim/executor/simulated_run.hpp"
#include "tests/scenarios.hpp"
#include "tests/sim/executor/simulated.hpp"

using namespace fomoe;
using costmodel::RunReport;
using costmodel::Scenario;
using tests::simulated_wholly;

namespace {

double between(int low_tenths, int high_tenths) { return *rc::gen::inRange(low_tenths, high_tenths) / 10.0; }

// A random scenario with unequal sites and paths, any method, and any collective that suits the method.
Scenario any_scenario() {
  // Where sites train at their own pace, the links decide how often each one exchanges
  // (tests/costmodel/methods/own_pace_test.cpp); `staleness` below binds async_diloco.
  std::vector<costmodel::Method> methods = costmodel::methods();
  std::erase_if(methods, [](const costmodel::Method& method) { return method.name == "decoupled_diloco"; });
  const auto& method =
      methods[static_cast<std::size_t>(*rc::gen::inRange(0, static_cast<int>(methods.size())))];
  const int sites = *rc::gen::element(2, 4);
  Scenario scenario = tests::every_axis_scenario(
      std::string(method.name), sites, method.partial_experts ? *rc::gen::element(1, 2, sites) : sites);
  scenario.model.d_model = 1680;  // small, so that latency and steps matter too
  scenario.workload.tokens = 4LL * 6 * sites * scenario.model.sequence_length;  // four rounds
  if (method.partial_experts && *rc::gen::arbitrary<bool>())
    scenario.strategy.placement = costmodel::PlacementKind::random;
  using costmodel::Collective;
  scenario.strategy.collective =
      *rc::gen::element(Collective::ring, Collective::direct, Collective::recursive);
  try {
    costmodel::check_composition(scenario);
  } catch (const InputError&) {
    scenario.strategy.collective = Collective::ring;
  }
  scenario.strategy.staleness = *rc::gen::inRange(0, 3);
  for (platforms::Site& site : scenario.platform.sites) {
    site.uplink_bytes_per_s = std::pow(10.0, between(70, 95));
    site.downlink_bytes_per_s = std::pow(10.0, between(70, 95));
    site.compute_factor = between(5, 20);
  }
  tests::change_each_path(scenario.platform, [&](platforms::Path& path) {
    path.latency_s = *rc::gen::inRange(0, 200) / 1000.0;
    if (*rc::gen::inRange(0, 3) == 0) path.bandwidth_bytes_per_s = std::pow(10.0, between(70, 95));
  });
  return scenario;
}

constexpr double kRounding = 1 + 1e-9;

}  // namespace

TEST_CASE("property: bytes are conserved, and are those of the plan whatever the links") {
  const bool ok = rc::check([] {
    const Scenario scenario = any_scenario();
    const RunReport report = simulated_wholly(scenario);
    double sent = 0, received = 0;
    for (const auto& site : report.sites) {
      sent += site.bytes_sent;
      received += site.bytes_received;
    }
    RC_ASSERT(std::abs(sent - received) <= 1e-9 * sent);
    Scenario elsewhere = scenario;
    elsewhere.platform = platforms::uniform(scenario.sites(), 1e9, 1e9, 0);
    RC_ASSERT(std::abs(simulated_wholly(elsewhere).bytes_per_token - report.bytes_per_token) <=
              1e-9 * report.bytes_per_token);
  });
  CHECK(ok);
}

TEST_CASE("property: shares of a round add up, exposed ≤ all communication, utilisation ≤ 1") {
  const bool ok = rc::check([] {
    const RunReport report = simulated_wholly(any_scenario());
    const costmodel::MeanRound& round = report.round;
    RC_ASSERT(std::abs(round.compute_s + round.exposed_communication_s + round.idle_s - round.duration_s) <=
              1e-6 * round.duration_s);
    RC_ASSERT(report.compute_utilization <= kRounding);
    double path_s = 0;
    for (const auto& step : report.critical_path) path_s += step.seconds;
    RC_ASSERT(path_s <= report.wall_clock_s * kRounding);
  });
  CHECK(ok);
}

TEST_CASE("property: wall-clock ≥ what the slowest site computes, and ≥ what the busiest port carries") {
  const bool ok = rc::check([] {
    const Scenario scenario = any_scenario();
    const RunReport report = simulated_wholly(scenario);
    for (int i = 0; i < scenario.sites(); ++i) {
      const auto& site = report.sites[static_cast<std::size_t>(i)];
      const platforms::Site& links = scenario.platform.sites[static_cast<std::size_t>(i)];
      const auto rounds = static_cast<double>(report.round.count);
      RC_ASSERT(report.wall_clock_s * kRounding >= site.compute_s * rounds);
      RC_ASSERT(report.wall_clock_s * kRounding >= site.bytes_sent / links.uplink_bytes_per_s);
      RC_ASSERT(report.wall_clock_s * kRounding >= site.bytes_received / links.downlink_bytes_per_s);
    }
  });
  CHECK(ok);
}

TEST_CASE("property: the names of sites change nothing, and the same seed gives the same answer") {
  const bool ok = rc::check([] {
    const Scenario scenario = any_scenario();
    Scenario renamed = scenario;
    for (platforms::Site& site : renamed.platform.sites) site.name = "x" + site.name + "y";
    const RunReport a = simulated_wholly(scenario), b = simulated_wholly(renamed),
                    again = simulated_wholly(scenario);
    RC_ASSERT(a.wall_clock_s == b.wall_clock_s);
    RC_ASSERT(a.compute_utilization == b.compute_utilization);
    RC_ASSERT(a.wall_clock_s == again.wall_clock_s);
    RC_ASSERT(a.bytes_per_token == again.bytes_per_token);
  });
  CHECK(ok);
}
