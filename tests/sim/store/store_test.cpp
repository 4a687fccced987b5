// Tests of simulated exchanges through a store, against times computed by hand and against the closed form.

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "costmodel/compose/make_plan.hpp"
#include "costmodel/formula/closed_form.hpp"
#include "sim/executor/lowering.hpp"
#include "tests/draws.hpp"
#include "tests/scenarios.hpp"
#include "tests/sim/executor/simulated.hpp"
#include "tests/sim/transfers.hpp"

using namespace fomoe;
using costmodel::Collective;
using costmodel::NodeKind;
using tests::check_close, tests::check_equal_reports, tests::simulated, tests::simulated_wholly;

namespace {

/// `sites` workers with 100 B/s up and 50 B/s down, and a store behind them.
platforms::Platform network(int sites, double latency_s) {
  platforms::Platform platform = platforms::uniform(sites, 100, 50, 0.3);
  platform.store.emplace().latency_s = latency_s;
  return platform;
}

/// One transfer of 250 fp32 elements (1000 B) of each worker, through the store.
costmodel::Plan exchange(int sites, bool aggregates) {
  platforms::Store store;
  store.aggregates = aggregates;
  costmodel::Plan plan = tests::transfer_only(sites, costmodel::Pattern::all_reduce, Collective::ring, {});
  plan.nodes.push_back({NodeKind::store, sites});
  costmodel::RoundPlan round;
  round.ops.push_back(
      {"exchange",
       costmodel::average_through_store(store, sites, {tests::exchange_of(tests::first(sites), 250)}),
       {}});
  plan.round = [round](std::int64_t) { return round; };
  return plan;
}

costmodel::Timeline play(const costmodel::Plan& plan, const platforms::Platform& platform,
                         bool bundle = true) {
  return tests::play(plan, platforms::with_store_as_site(platform), bundle);
}

costmodel::Scenario stored(const char* method, int sites, bool aggregates, int overlap = 0) {
  return tests::through_store(tests::ideal_scenario(method, sites, overlap), aggregates);
}

}  // namespace

TEST_CASE("two equal sites: latency + S/up, then latency + S/down, and each byte passes the store once") {
  for (const bool aggregates : {true, false}) {
    const costmodel::Timeline timeline = play(exchange(2, aggregates), network(2, 0.1));
    check_close(timeline.round_end_s.back(), 0.1 + 1000.0 / 100 + 0.1 + 1000.0 / 50, 1e-9);
    for (const int site : {0, 1}) {
      CHECK(timeline.sent.at(site, 2) == 1000);
      CHECK(timeline.sent.at(2, site) == 1000);
    }
    CHECK(timeline.sent.at(0, 1) == 0);
    CHECK(timeline.sent.at(1, 0) == 0);
  }
}

TEST_CASE("three sites: without an aggregator, each downloads the payloads of the two others") {
  const costmodel::Timeline timeline = play(exchange(3, false), network(3, 0.1));
  check_close(timeline.round_end_s.back(), 0.1 + 10 + 0.1 + 2 * 1000.0 / 50, 1e-9);
  for (const int site : {0, 1, 2}) {
    CHECK(timeline.sent.at(site, 3) == 1000);
    CHECK(timeline.sent.at(3, site) == 2000);
  }
}

TEST_CASE(
    "a result exists when the slowest site has uploaded; an object is downloaded as soon as it is there") {
  platforms::Platform platform = network(3, 0);
  platform.sites[0].uplink_bytes_per_s = 200;  // 5 s, 10 s and 50 s
  platform.sites[2].uplink_bytes_per_s = 20;
  platform.sites[1].downlink_bytes_per_s = 40;
  // The result is there after 50 s, and comes down in 25 s at site 1.
  check_close(play(exchange(3, true), platform).round_end_s.back(), 50 + 25, 1e-9);
  // Site 1 has downloaded the object of site 0 by then, and that of site 2 is there after 50 s, too.
  check_close(play(exchange(3, false), platform).round_end_s.back(), 50 + 25, 1e-9);
  // Site 2 downloads 250 B until 10 s, and the other 1750 B of the two objects by 45 s: not the last one.
  platform.sites[2].downlink_bytes_per_s = 10;  // now 50 B until 10 s, and 1950 B by 205 s
  check_close(play(exchange(3, false), platform).round_end_s.back(), 205, 1e-9);
}

TEST_CASE("a store that is slower than its sites together shares its ports fairly") {
  platforms::Platform platform = network(3, 0.1);
  platform.store->downlink_bytes_per_s = 150;
  platform.store->uplink_bytes_per_s = 60;
  check_close(play(exchange(3, true), platform).round_end_s.back(),
              0.1 + 3 * 1000.0 / 150 + 0.1 + 3 * 1000.0 / 60, 1e-9);
}

TEST_CASE("objects of different owners do not wait for each other") {
  // Sites 0 and 1 have an object together, and so do sites 2 and 3, of which site 2 uploads slowly.
  costmodel::Plan plan = exchange(4, true);
  costmodel::RoundPlan round;
  round.ops.push_back(
      {"experts",
       costmodel::average_through_store(platforms::Store(), 4,
                                        {tests::exchange_of({0, 1}, 250), tests::exchange_of({2, 3}, 250),
                                         tests::exchange_of({0, 1}, 250)}),
       {}});
  plan.round = [round](std::int64_t) { return round; };
  platforms::Platform platform = network(4, 0);
  platform.sites[2].uplink_bytes_per_s = 10;
  for (const bool bundle : {true, false}) {
    const costmodel::Timeline timeline = play(plan, platform, bundle);
    for (const costmodel::Interval& interval : timeline.intervals) {
      const int site = interval.node;
      if (site < 2) check_close(interval.end_s, 2000.0 / 100 + 2000.0 / 50, 1e-9);
      if (site == 2 || site == 3) check_close(interval.end_s, 1000.0 / 10 + 1000.0 / 50, 1e-9);
    }
    CHECK(timeline.sent.at(0, 4) == 2000);
    CHECK(timeline.sent.at(4, 3) == 1000);
  }
  // The two exchanges of sites 0 and 1 are one object.
  const auto& transfer = std::get<costmodel::Transfer>(round.ops[0].what);
  CHECK(sim::lower(transfer, 5, {}).size() == 2);
}

TEST_CASE("ideal hosts: every method through a store, simulated = closed form") {
  for (const costmodel::Method& method : costmodel::methods()) {
    if (!method.through_store) continue;
    for (const bool aggregates : {true, false}) {
      if (method.name == "fedavg" && !aggregates) continue;
      for (const int sites : {2, 4, 8}) {
        for (const double latency_s : {0.0, 0.05}) {
          CAPTURE(method.name);
          CAPTURE(sites);
          costmodel::Scenario scenario =
              tests::through_store(tests::every_axis_scenario(method.name, sites), aggregates, latency_s);
          scenario.strategy.fragments = 1;
          // The union of sparse payloads would be rounded up to whole values.
          if (aggregates) scenario.platform.store->result_share = 64.0 / 4096;
          for (platforms::Site& site : scenario.platform.sites) site.downlink_bytes_per_s = 3e9;
          const costmodel::Resolved resolved = costmodel::resolve(scenario);
          CHECK(costmodel::approximations(scenario, resolved).empty());
          check_equal_reports(scenario);
        }
      }
    }
  }
}

TEST_CASE(
    "fomoe with fixed placement: the dense part and the experts share a site's links, simulated = closed "
    "form") {
  for (const bool aggregates : {true, false}) {
    for (const int sites : {4, 8}) {
      for (int overlap = 1; overlap <= sites; overlap *= 2) {
        CAPTURE(sites);
        CAPTURE(overlap);
        costmodel::Scenario scenario =
            tests::through_store(tests::every_axis_scenario("fomoe", sites, overlap), aggregates, 0.01);
        for (platforms::Site& site : scenario.platform.sites) site.downlink_bytes_per_s = 5e8;
        check_equal_reports(scenario);
      }
    }
  }
}

TEST_CASE("sites that differ: the closed form has the site whose upload and download take longest together") {
  costmodel::Scenario scenario = stored("diloco", 3, true);
  scenario.platform.sites[0].uplink_bytes_per_s = 3e8;
  scenario.platform.sites[1].downlink_bytes_per_s = 2e8;
  scenario.workload.tokens *= 20;  // the first round, in which sites have not drifted apart, is one of 240
  const costmodel::RunReport formula = costmodel::closed_form(scenario), report = simulated_wholly(scenario);
  check_close(report.wall_clock_s, formula.wall_clock_s, 2e-3);
  const double payload = 2 * static_cast<double>(costmodel::count_parameters(scenario.model).total());
  check_close(formula.round.communication_s, payload / 1e9 + payload / 2e8,
              1e-12);  // 6 of site 1, 4.3 of site 0
  CHECK(costmodel::approximations(scenario, costmodel::resolve(scenario)).empty());
}

TEST_CASE("drawn sites that differ, ideal hosts: later rounds, simulated = closed form") {
  tests::Draws draws(56);
  double worst = 0;
  for (int i = 0; i < 40; ++i) {
    const int sites = 2 + draws.below(5);
    const bool aggregates = draws.chance(0.5);
    costmodel::Scenario scenario = stored(draws.chance(0.5) ? "diloco" : "local_sgd", sites, aggregates);
    scenario.platform.store->latency_s = draws.between(0, 0.01);
    for (platforms::Site& site : scenario.platform.sites) {
      site.uplink_bytes_per_s = draws.between(1e7, 1e8);
      site.downlink_bytes_per_s = draws.between(1e7, 1e8);
    }
    // Sites that differ begin the first rounds together. Then they have drifted apart, and the durations
    // repeat, or long and short ones take turns: six rounds have as many of both.
    const std::vector<double> rounds = simulated_wholly(scenario).round_durations_s;
    REQUIRE(rounds.size() == 12);
    const double later_s = std::accumulate(rounds.end() - 6, rounds.end(), 0.0) / 6;
    const double formula_s = costmodel::closed_form(scenario).round.duration_s;
    CAPTURE(aggregates);
    CHECK(std::abs(later_s / formula_s - 1) < (aggregates ? 1e-9 : 0.02));
    worst = std::max(worst, std::abs(later_s / formula_s - 1));
  }
  CHECK(worst > 0);  // the cases differ
}

TEST_CASE("the store is no idle GPU: utilisation, energy, cost and sites are those of the sites that train") {
  costmodel::Scenario scenario = stored("sparse_loco", 4, false);
  scenario.power.emplace().board_w = 700;
  scenario.prices.emplace();
  scenario.prices->sites.assign(4, {});
  for (costmodel::SitePrices& site : scenario.prices->sites) site.gpu_price_per_s = 1;
  const sim::SimulatedRun run = sim::simulate_scenario(scenario);
  const costmodel::RunReport& report = run.report;
  CHECK(run.plan.nodes.size() == 5);
  REQUIRE(report.sites.size() == 4);
  // 5 steps of 1 s in each of 12 rounds, at every site
  check_close(report.compute_utilization, 60 / report.wall_clock_s, 1e-9);
  check_close(report.cost->gpu_cost, 4 * report.wall_clock_s, 1e-9);
  check_close(report.cost->energy_kwh.value(), costmodel::closed_form(scenario).cost->energy_kwh.value(),
              1e-9);
  REQUIRE(report.store);
  double sent = 0, received = 0;
  for (const costmodel::SiteReport& site : report.sites) {
    sent += site.bytes_sent;
    received += site.bytes_received;
  }
  check_close(report.store->bytes_received, sent, 1e-12);
  check_close(report.store->bytes_sent, received, 1e-12);
  check_close(received, 3 * sent, 1e-12);
  CHECK(report.store->requests == 12 * (4 + 4 * 3));
  check_close(costmodel::closed_form(scenario).store->requests, report.store->requests, 1e-12);
}

TEST_CASE("Linux hosts: connections to and from the store have windows, which make the exchange longer") {
  for (const bool aggregates : {true, false}) {
    costmodel::Scenario scenario = tests::through_store(tests::ideal_scenario("diloco", 3), aggregates, 0.05);
    scenario.workload.tokens /= 4;
    const double ideal_s = simulated(scenario).round.communication_s;
    scenario.network = costmodel::linux_host();
    const costmodel::RunReport report = simulated(scenario), formula = costmodel::closed_form(scenario);
    CHECK(report.round.communication_s > 1.05 * ideal_s);
    CHECK(formula.round.communication_s > 1.05 * ideal_s);
    CHECK(report.store->bytes_received ==
          simulated(stored("diloco", 3, aggregates)).store->bytes_received / 4);
  }
}

TEST_CASE("a quorum goes on without a slow site, whose payload the store then lacks") {
  costmodel::Scenario scenario = stored("diloco", 4, false);
  scenario.strategy.quorum = 3;
  scenario.platform.sites[3].compute_factor = 3;
  const costmodel::RunReport report = simulated(scenario);
  REQUIRE(report.attendance);
  CHECK(report.attendance->missed_rounds[3] > 0);
  CHECK(report.attendance->missed_rounds[0] == 0);
  CHECK(report.wall_clock_s < simulated(stored("diloco", 4, false)).wall_clock_s * 1.5);
}

TEST_CASE("rates of the store follow a factor on all rates, but not the gateways of the sites") {
  platforms::Platform platform = network(2, 0);
  platform.store->uplink_bytes_per_s = 40;
  CHECK(platforms::scaled_bandwidth(platform, 0.5).store->uplink_bytes_per_s == 20);
  CHECK(platforms::with_machines(platform, {3, 3}).store->uplink_bytes_per_s == 40);
  const platforms::Platform whole = platforms::with_store_as_site(platform);
  CHECK(whole.size() == 3);
  CHECK_FALSE(whole.store);
  CHECK(whole.path(0, 1).latency_s == 0.3);
  CHECK(whole.path(0, 2).latency_s == 0);
  CHECK(platforms::site_name(platform, 1) == "site-1");
  CHECK(platforms::site_name(platform, 2) == "store");
}
