// Compares the closed form with the simulation on platforms whose sites differ.
#include <doctest/doctest.h>

#include <cmath>
#include <string>

#include "costmodel/compose/check.hpp"
#include "costmodel/formula/closed_form.hpp"
#include "costmodel/formula/resolved.hpp"
#include "costmodel/methods/all.hpp"
#include "costmodel/plan/method.hpp"
#include "platforms/support/input_error.hpp"
#include "sim/executor/simulated_run.hpp"
#include "tests/draws.hpp"
#include "tests/scenarios.hpp"

using namespace fomoe;
using costmodel::Collective;
using costmodel::Scenario;
using tests::Draws;

namespace {

// Uplinks, downlinks, paths and latencies that differ by factors of up to 8.
platforms::Platform drawn_platform(Draws& draws, int sites) {
  platforms::Platform platform = platforms::uniform(sites, 1e9, 1e9, 0);
  for (platforms::Site& site : platform.sites) {
    site.uplink_bytes_per_s = 1e8 * draws.between(1, 8);
    site.downlink_bytes_per_s = 1e8 * draws.between(1, 8);
  }
  tests::change_each_path(platform, [&](platforms::Path& path) {
    path.latency_s = draws.between(0.01, 0.3);
    path.bandwidth_bytes_per_s = 1e8 * draws.between(1, 8);
  });
  return platform;
}

/// The relative error of the closed form's time of the transfers.
double transfer_error(const Scenario& scenario) {
  const double simulated_s =
      sim::simulate_scenario(scenario, {.rounds = {}, .all_rounds = true}).report.wall_clock_s;
  Scenario instant = scenario;
  instant.platform = platforms::uniform(scenario.sites(), 1e18, 1e18, 0);
  const double compute_s = costmodel::closed_form(instant).wall_clock_s;
  return (costmodel::closed_form(scenario).wall_clock_s - simulated_s) / (simulated_s - compute_s);
}

/// Checks the error of the time of the transfers, and returns it.
double check_close(const Scenario& scenario) {
  const double simulated_s =
      sim::simulate_scenario(scenario, {.rounds = {}, .all_rounds = true}).report.wall_clock_s;
  const double formula_s = costmodel::closed_form(scenario).wall_clock_s;
  // Only the transfers can differ.
  Scenario instant = scenario;
  instant.platform = platforms::uniform(scenario.sites(), 1e18, 1e18, 0);
  const double compute_s = costmodel::closed_form(instant).wall_clock_s;
  REQUIRE(simulated_s - compute_s > 0.3 * compute_s);
  CHECK((formula_s - compute_s) / (simulated_s - compute_s) == doctest::Approx(1).epsilon(0.02));
  return std::abs(formula_s - simulated_s) / (simulated_s - compute_s);
}

}  // namespace

TEST_CASE("ten drawn platforms: the closed form of a ring is within 2 % of the simulation") {
  Draws draws(231);
  for (int i = 0; i < 10; ++i) {
    CAPTURE(i);
    Scenario scenario = tests::ideal_scenario(i % 2 == 0 ? "diloco" : "local_sgd", 3 + i % 5);
    scenario.platform = drawn_platform(draws, scenario.sites());
    CHECK(costmodel::represents_sites(scenario, costmodel::resolve(scenario)));
    check_close(scenario);
  }
}

TEST_CASE("a star through the first site, on platforms whose other sites differ") {
  Draws draws(232);
  for (int i = 0; i < 10; ++i) {
    CAPTURE(i);
    Scenario scenario = tests::ideal_scenario("fedavg", 2 + i % 6);
    scenario.platform = drawn_platform(draws, scenario.sites());
    // Differences of 8 bits go up, parameters of 16 bits come down.
    if (i % 2 == 1) scenario.strategy.wire = costmodel::plain_format(costmodel::ElementType::int8);
    CHECK(costmodel::represents_sites(scenario, costmodel::resolve(scenario)));
    check_close(scenario);
  }
}

TEST_CASE("a direct exchange by the ports of its sites is within 2 % of the simulation") {
  Draws draws(233);
  double sum = 0;
  for (int i = 0; i < 10; ++i) {
    CAPTURE(i);
    Scenario scenario = tests::ideal_scenario("diloco", 3 + i % 3);
    scenario.strategy.collective = Collective::direct;
    scenario.platform = drawn_platform(draws, scenario.sites());
    CHECK(costmodel::represents_sites(scenario, costmodel::resolve(scenario)));
    sum += check_close(scenario);
  }
  // Sites that end early begin the next exchange early; without that the mean error is twice as large.
  CHECK(sum < 10 * 0.003);
}

TEST_CASE("regions whose links differ: rounds inside them, and all-reduces through them") {
  Draws draws(237);
  double mean_error = 0;
  for (int i = 0; i < 16; ++i) {
    CAPTURE(i);
    const bool rounds = i % 2 == 0;
    const int regions = 2 + draws.below(3), inside = 2 + draws.below(3);
    CAPTURE(regions);
    CAPTURE(inside);
    Scenario scenario = tests::ideal_scenario(rounds ? "hierarchical_diloco" : "diloco", regions * inside);
    scenario.strategy.regions = regions;
    scenario.strategy.global_period = 2 + draws.below(4);
    scenario.strategy.collective = !rounds      ? Collective::hierarchical
                                   : i % 4 == 0 ? Collective::ring
                                                : Collective::direct;
    scenario.platform = drawn_platform(draws, scenario.sites());
    if (i % 3 == 0) {  // every other site belongs to the same region
      for (int site = 0; site < scenario.sites(); ++site)
        scenario.platform.sites[static_cast<std::size_t>(site)].region = std::to_string(site % regions);
    }
    CHECK(costmodel::represents_sites(scenario, costmodel::resolve(scenario)));
    if (rounds) {
      check_close(scenario);
      continue;
    }
    // Regions that end their part early go on, so the closed form is never too short.
    CHECK(costmodel::approximates(costmodel::resolve(scenario)));
    const double error = transfer_error(scenario);
    CHECK(error > -1e-6);
    CHECK(error < 0.05);
    mean_error += error / 8;
  }
  CHECK(mean_error < 0.03);
}

TEST_CASE("regions: the closed form sends each site's bytes where the simulation does") {
  Draws draws(238);
  for (int i = 0; i < 6; ++i) {
    CAPTURE(i);
    Scenario scenario = tests::ideal_scenario(i % 2 == 0 ? "hierarchical_diloco" : "diloco", 6);
    scenario.strategy.regions = i < 3 ? 2 : 3;
    scenario.strategy.collective = i % 2 == 1   ? Collective::hierarchical
                                   : i % 4 == 0 ? Collective::ring
                                                : Collective::direct;
    scenario.strategy.ring_order = costmodel::RingOrder::given;
    if (i > 1) scenario.platform = drawn_platform(draws, 6);
    costmodel::SitePrices row;
    row.egress_to = {{"x", {{}}}};
    scenario.prices = costmodel::Prices{"USD", "", std::vector<costmodel::SitePrices>(6, row), {}};
    const auto formula = costmodel::closed_form(scenario);
    const auto simulated = sim::simulate_scenario(scenario, {.rounds = {}, .all_rounds = true}).report;
    for (std::size_t site = 0; site < 6; ++site) {
      const double sent = simulated.sites[site].bytes_sent;
      for (std::size_t to = 0; to < 6; ++to) {
        CAPTURE(site);
        CAPTURE(to);
        CHECK(std::abs(formula.sites[site].bytes_sent_to[to] - simulated.sites[site].bytes_sent_to[to]) <
              1e-5 * sent);
      }
    }
  }
}

// Prediction for these seeds, written before they were first run: rings are exact to 1e-6; at least 95 of 100
// stars are within 2 %, and none is off by more than 4 %; at least 82 of 100 direct exchanges are within 2 %,
// and none is off by more than 9 %. (Seeds 981 to 983 came first: 93 stars, of which four were off by 20 %
// because flows that end together were lost to rounding, and 87 direct exchanges, the largest error 7 %.)
TEST_CASE("300 drawn platforms: errors of the closed form (for the documentation)" * doctest::skip()) {
  const struct {
    const char* method;
    Collective collective;
    std::uint64_t seed;
  } kinds[] = {{"diloco", Collective::ring, 984},
               {"fedavg", Collective::ring, 985},
               {"diloco", Collective::direct, 986}};
  for (const auto& kind : kinds) {
    Draws draws(kind.seed);
    int within = 0;
    double largest = 0;
    for (int i = 0; i < 100; ++i) {
      Scenario scenario = tests::ideal_scenario(kind.method, 3 + i % 5);
      scenario.strategy.collective = kind.collective;
      scenario.platform = drawn_platform(draws, scenario.sites());
      const double error = std::abs(transfer_error(scenario));
      within += error <= 0.02 ? 1 : 0;
      largest = std::max(largest, error);
    }
    MESSAGE(std::string(kind.method) << " " << std::string(costmodel::to_string(kind.collective)) << ": "
                                     << within << " of 100 within 2 %, largest error " << largest);
    CHECK(largest < 0.09);
  }
}

TEST_CASE(
    "every method on drawn platforms: within 2 % of the simulation, or the closed form says it is not") {
  Draws draws(235);
  const auto& methods = costmodel::methods();
  int compared = 0;
  for (std::size_t i = 0; i < 8 * methods.size(); ++i) {
    const costmodel::Method& method = methods[i % methods.size()];
    CAPTURE(i);
    CAPTURE(method.name);
    Scenario scenario = tests::ideal_scenario(method.name, 2 + draws.below(4));
    scenario.platform = drawn_platform(draws, scenario.sites());
    if (method.one_site) continue;  // it sends nothing
    if (method.usual_wire) scenario.strategy.wire = *method.usual_wire;
    if (method.usual_wire || method.name == "eager_diloco") {
      // Few bytes, or bytes that a whole round hides, need slow links, so that transfers matter.
      scenario.platform = platforms::scaled_bandwidth(std::move(scenario.platform), 0.02);
    }
    try {
      costmodel::check(scenario);
    } catch (const InputError&) {
      continue;  // not every method allows every number of sites
    }
    if (!costmodel::represents_sites(scenario, costmodel::resolve(scenario))) continue;
    ++compared;
    check_close(scenario);
  }
  CHECK(compared > 20);
}

TEST_CASE("patterns without a formula for sites that differ are told") {
  Draws draws(34);
  Scenario scenario = tests::ideal_scenario("fomoe", 4, 2);
  scenario.strategy.collective = costmodel::Collective::recursive;
  CHECK(costmodel::represents_sites(scenario, costmodel::resolve(scenario)));  // equal sites
  scenario.platform = drawn_platform(draws, 4);
  CHECK_FALSE(costmodel::represents_sites(scenario, costmodel::resolve(scenario)));
  CHECK(costmodel::closed_form(scenario).notes.back().find("simulate the scenario instead") !=
        std::string::npos);
}

TEST_CASE("rings of owners over unequal links are close to the simulation, and said to be approximate") {
  Draws draws(51);
  constexpr int kScenarios = 24;
  double sum = 0;
  for (int drawn = 0; drawn < kScenarios; ++drawn) {
    CAPTURE(drawn);
    const int sites = 4 + 2 * draws.below(3);
    Scenario scenario = tests::ideal_scenario("fomoe", sites, 2 + draws.below(sites - 2));
    scenario.strategy.placement =
        draws.below(2) == 0 ? costmodel::PlacementKind::fixed : costmodel::PlacementKind::random;
    scenario.strategy.reshuffle_rounds = 1000;
    scenario.model.d_expert *= 32;  // most bytes are those of experts
    scenario.strategy.ring_order =
        draws.below(2) == 0 ? costmodel::RingOrder::best : costmodel::RingOrder::given;
    // Half of the time latencies decide, otherwise the rates of links.
    const double scale = draws.below(2) == 0 ? 1 : 0.03;
    scenario.platform = platforms::scaled_bandwidth(drawn_platform(draws, sites), scale);
    CHECK(costmodel::closed_form(scenario).notes.back().find("owners of experts") != std::string::npos);
    const double error = transfer_error(scenario);
    CHECK(std::abs(error) < 0.06);  // measured: at most 0.05
    sum += std::abs(error);
  }
  CHECK(sum / kScenarios < 0.01);  // measured: 0.009
}
