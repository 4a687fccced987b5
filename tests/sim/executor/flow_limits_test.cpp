// Compares the closed form of every method with the simulation where the paths between sites limit each flow,
// and where latencies count. Sites are equal and all sizes divide evenly.
#include <doctest/doctest.h>

#include <cmath>
#include <functional>
#include <string>

#include "costmodel/compose/composition.hpp"
#include "costmodel/formula/closed_form.hpp"
#include "costmodel/methods/all.hpp"
#include "costmodel/plan/method.hpp"
#include "platforms/support/input_error.hpp"
#include "sim/executor/simulated_run.hpp"
#include "tests/scenarios.hpp"
#include "tests/sim/executor/simulated.hpp"

using namespace fomoe;
using costmodel::Collective;
using costmodel::Scenario;

namespace {

constexpr double kPort = 1e9;
constexpr double kSlowPath =
    5e7;  // so slow that a flow to one of seven others takes longer than all through a port
constexpr double kLatency_s = 0.01;

platforms::Platform platform_of(int sites, double path_bytes_per_s, double latency_s) {
  platforms::Platform platform = platforms::uniform(sites, kPort, kPort, latency_s);
  platform.paths.change_all([&](platforms::Path& path) { path.bandwidth_bytes_per_s = path_bytes_per_s; });
  return platform;
}

bool composes(const Scenario& scenario) {
  try {
    costmodel::check_composition(scenario);
    return true;
  } catch (const InputError&) {
    return false;
  }
}

/// Every method with every number of sites, number of owners of an expert, and collective that it allows.
void each_method(const std::function<void(Scenario&)>& visit) {
  for (const costmodel::Method& method : costmodel::methods()) {
    for (const int sites : {2, 4, 8}) {
      for (int overlap = method.partial_experts ? 1 : sites; overlap <= sites; overlap *= 2) {
        for (const Collective collective : {Collective::ring, Collective::direct, Collective::recursive}) {
          Scenario scenario = tests::every_axis_scenario(std::string(method.name), sites, overlap);
          scenario.strategy.collective = collective;
          if (collective == Collective::recursive && !composes(scenario)) continue;
          CAPTURE(method.name);
          CAPTURE(sites);
          CAPTURE(overlap);
          CAPTURE(costmodel::to_string(collective));
          visit(scenario);
        }
      }
    }
  }
}

/// Whether some of the experts' bytes and of the dense bytes travel over different paths at the same time: a
/// recursive exchange of the dense part passes all sites, and that of an expert only its owners. The formula
/// adds the times of both, so that it is a little longer than the simulation.
bool uses_paths_at_once(const Scenario& scenario) {
  const int owners = scenario.strategy.expert_overlap;
  return scenario.strategy.collective == Collective::recursive && scenario.strategy.method->partial_experts &&
         owners > 1 && owners < scenario.sites();
}

double formula_s(const Scenario& scenario) { return costmodel::closed_form(scenario).wall_clock_s; }

/// How far the closed form may be from the simulation, relatively. Where sites wait for fragments, the
/// formula leaves out that none has been sent at the beginning.
double exactness(const Scenario& scenario) {
  return scenario.strategy.method->name == "decoupled_diloco" ? 0.01 : 1e-9;
}

}  // namespace

TEST_CASE("every method over paths that limit each flow: simulated = closed form") {
  each_method([](Scenario& scenario) {
    scenario.platform = platform_of(scenario.sites(), kSlowPath, 0);
    const double seconds = tests::simulated_wholly(scenario).wall_clock_s;
    if (uses_paths_at_once(scenario)) {
      CHECK(formula_s(scenario) > seconds);
      CHECK(formula_s(scenario) < seconds * 1.001);
    } else {
      CHECK(formula_s(scenario) == doctest::Approx(seconds).epsilon(exactness(scenario)));
    }
    // The limit counts: over unlimited paths the same bytes take less time, unless compute hides or nothing
    // is sent.
    scenario.platform = platform_of(scenario.sites(), platforms::kUnlimited, 0);
    const bool sends = !scenario.strategy.method->one_site;
    CHECK((tests::simulated_wholly(scenario).wall_clock_s < seconds * (1 - 1e-6)) == sends);
  });
}

TEST_CASE("every method over paths with latencies: simulated = closed form") {
  for (const double path : {platforms::kUnlimited, kSlowPath}) {
    each_method([&](Scenario& scenario) {
      if (uses_paths_at_once(scenario)) return;
      scenario.platform = platform_of(scenario.sites(), path, kLatency_s);
      CHECK(formula_s(scenario) ==
            doctest::Approx(tests::simulated_wholly(scenario).wall_clock_s).epsilon(exactness(scenario)));
    });
  }
}

TEST_CASE("every method with windows that limit each flow: simulated = closed form") {
  each_method([](Scenario& scenario) {
    if (uses_paths_at_once(scenario)) return;
    scenario.platform = platform_of(scenario.sites(), platforms::kUnlimited, kLatency_s);
    scenario.network.tcp_window_bytes = kSlowPath * 2 * kLatency_s;
    const double limited_s = formula_s(scenario);
    CHECK(limited_s ==
          doctest::Approx(tests::simulated_wholly(scenario).wall_clock_s).epsilon(exactness(scenario)));
    // Two connections carry twice as much.
    scenario.network.streams = 2;
    CHECK(formula_s(scenario) ==
          doctest::Approx(tests::simulated_wholly(scenario).wall_clock_s).epsilon(exactness(scenario)));
    CHECK((formula_s(scenario) < limited_s) == !scenario.strategy.method->one_site);
  });
}

TEST_CASE("every method where paths and ports are almost equally slow: the closed form is a lower bound") {
  // The formula takes the slower of a port and a path. While flows of unequal sizes share a port, the path of
  // the largest one is not used fully, so that the simulation may take a little longer.
  each_method([](Scenario& scenario) {
    if (uses_paths_at_once(scenario)) return;
    scenario.platform = platform_of(scenario.sites(), 0.4 * kPort, 0);
    const double ratio = formula_s(scenario) / tests::simulated_wholly(scenario).wall_clock_s;
    CHECK(ratio < 1 + exactness(scenario));
    CHECK(ratio > 1 - 0.001);
  });
}

TEST_CASE("a half-duplex line: what crosses it twice takes it twice, in both engines") {
  // Two sites behind a line of 1 Gb/s for both directions, and one beside it; 2 GB averaged directly. In each
  // of two steps, the line carries 2·2 parts between its sites, and 4 to and from the third one, of 2/3
  // GB: 42.67 s.
  Scenario scenario = tests::ideal_scenario("diloco", 3);
  scenario.strategy.collective = Collective::direct;
  scenario.platform = platforms::uniform(3, 1e12, 1e12, 0.0);
  const double bytes = 2.0 * static_cast<double>(costmodel::count_parameters(scenario.model).total());
  scenario.platform.shared_links = {{"line", 1e8}};
  for (const auto& [from, to] : {std::pair{0, 1}, {1, 0}}) scenario.platform.share(from, to, {0, 0}, 1);
  for (const int site : {0, 1}) {
    scenario.platform.share(site, 2, {0});
    scenario.platform.share(2, site, {0}, 1);
  }
  const double round_s = 5 + 2 * 8 * bytes / 3 / 1e8;
  CHECK(tests::simulated(scenario).wall_clock_s == doctest::Approx(12 * round_s).epsilon(1e-6));
  CHECK(costmodel::closed_form(scenario).wall_clock_s == doctest::Approx(12 * round_s).epsilon(1e-6));
}

TEST_CASE("a limit of each connection: a flow has as many as its streams and machines") {
  Scenario scenario = tests::ideal_scenario("diloco", 2);
  scenario.platform = platforms::uniform(2, 1e9, 1e9, 0.0);
  const double bytes = 2.0 * static_cast<double>(costmodel::count_parameters(scenario.model).total());
  scenario.platform.shared_links = {{"quota", 1e6, true}};
  scenario.platform.share(0, 1, {0});
  scenario.platform.share(1, 0, {0});
  const auto round_s = [&] { return tests::simulated(scenario).wall_clock_s / 12 - 5; };
  CHECK(round_s() == doctest::Approx(bytes / 1e6).epsilon(1e-6));
  scenario.network.streams = 3;
  CHECK(round_s() == doctest::Approx(bytes / 3e6).epsilon(1e-6));
  CHECK(costmodel::closed_form(scenario).wall_clock_s / 12 - 5 == doctest::Approx(bytes / 3e6).epsilon(1e-6));
  scenario.platform.paths.change_all([](platforms::Path& path) { path.machines = 4; });
  CHECK(round_s() == doctest::Approx(bytes / 12e6).epsilon(1e-6));
}
