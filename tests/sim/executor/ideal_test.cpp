// Tests the ideal case of equal sites, fluid links and no latency. The simulation and the closed form compute
// the same times, by events and by formulas, and must agree to 1e-9.
#include <doctest/doctest.h>

#include <cmath>

#include "costmodel/formula/closed_form.hpp"
#include "sim/executor/simulated_run.hpp"
#include "tests/scenarios.hpp"
#include "tests/sim/executor/simulated.hpp"

using namespace fomoe;
using costmodel::Collective;

using tests::check_close, tests::check_equal_reports;

TEST_CASE("ideal: full-replica methods, simulated = closed form") {
  for (const char* method : {"ddp", "diloco", "local_adamw"}) {
    for (const int sites : {2, 4, 8}) {
      for (const Collective collective : {Collective::ring, Collective::direct}) {
        CAPTURE(method);
        CAPTURE(sites);
        costmodel::Scenario scenario = tests::ideal_scenario(method, sites);
        scenario.strategy.collective = collective;
        check_equal_reports(scenario);
      }
    }
  }
}

TEST_CASE("ideal: a server's sums and model along a chain, simulated = closed form; each hop as one flow") {
  for (const int sites : {1, 2, 3, 5, 7}) {  // and the server: as many chunks, which divide the payload
    CAPTURE(sites);
    costmodel::Scenario scenario = tests::ideal_scenario("fedavg", sites);
    scenario.strategy.collective = Collective::chain;
    scenario.platform = platforms::uniform(sites, 2e9, 1e9, 0.02);
    check_equal_reports(scenario, false);  // the sites get the model one after the other
    if (sites == 1) continue;
    const auto seconds = [&] { return sim::simulate_scenario(scenario).report.wall_clock_s; };
    const double chunks_s = seconds();
    scenario.network.ring_model = costmodel::RingModel::fluid;
    const double bytes = 2.0 * static_cast<double>(costmodel::count_parameters(scenario.model).total());
    // 12 rounds of 5 s, and S in each direction at the downlinks' rate, with one latency.
    CHECK(seconds() == doctest::Approx(12 * (5 + 2 * (bytes / 1e9 + 0.02))).epsilon(1e-9));
    CHECK(seconds() < chunks_s);
  }
}

TEST_CASE("ideal: payloads that M does not divide agree within one element per chunk") {
  for (const int sites : {3, 5, 7}) {
    for (const Collective collective : {Collective::ring, Collective::direct}) {
      costmodel::Scenario scenario = tests::ideal_scenario("diloco", sites);
      scenario.model.d_model = 11;
      scenario.model.d_expert = 13;
      scenario.platform = platforms::uniform(sites, 1e3, 1e3, 0);
      scenario.strategy.collective = collective;
      const double formula_s = costmodel::closed_form(scenario).round.communication_s;
      const double simulated_s = sim::simulate_scenario(scenario).report.round.communication_s;
      // There are two payloads (dense, experts) of 2 bytes per element. A ring moves 2(M−1) chunks one after
      // the other; a direct exchange moves 2(M−1) chunks through each port. Each chunk is at most one element
      // longer than S/M.
      const double one_element_s = 2 * (sites - 1) * 2 * 2.0 / 1e3;
      CAPTURE(sites);
      CHECK(std::abs(simulated_s - formula_s) <= one_element_s);
      CHECK(simulated_s >= formula_s * (1 - 1e-9));
    }
  }
}

TEST_CASE("ideal: sites that prepare their payloads at a rate, simulated = closed form") {
  // fedavg: all bytes pass through a server, which prepares what it sends to all others
  for (const std::string method : {"ddp", "diloco", "des_loc", "gossip", "fedavg"}) {
    for (const Collective collective : {Collective::ring, Collective::direct}) {
      CAPTURE(method);
      costmodel::Scenario scenario = tests::ideal_scenario(method, 4);
      scenario.strategy.collective = collective;
      const double without_s = costmodel::closed_form(scenario).round.duration_s;
      scenario.network.payload_bytes_per_s = 3e7;
      // the server's worker prepares its payload, too, while none of its bytes cross a link
      check_equal_reports(scenario, method != "fedavg");
      CHECK(costmodel::closed_form(scenario).round.duration_s > 1.1 * without_s);
    }
  }
}

TEST_CASE("ideal: microseconds agree as well as hours, simulated = closed form") {
  // 8 sites at 100 TB/s: 14 steps of about a microsecond each, 1 µs of compute.
  costmodel::Scenario scenario = tests::ideal_scenario("ddp", 8);
  scenario.platform = platforms::uniform(8, 1e14, 1e14, 0);
  scenario.compute = costmodel::GivenStepTime{1e-6};
  check_equal_reports(scenario);
  scenario.platform = platforms::uniform(8, 1e3, 1e3, 0);
  scenario.compute = costmodel::GivenStepTime{1e5};
  check_equal_reports(scenario);
}

TEST_CASE("ideal: fomoe with fixed placement, every O_e that divides M, simulated = closed form") {
  for (const int sites : {2, 4, 8}) {
    for (int overlap = 1; overlap <= sites; overlap *= 2) {
      for (const Collective collective : {Collective::ring, Collective::direct}) {
        CAPTURE(sites);
        CAPTURE(overlap);
        costmodel::Scenario scenario = tests::ideal_scenario("fomoe", sites, overlap);
        scenario.strategy.collective = collective;
        check_equal_reports(scenario);
        scenario.strategy.skip_token = true;
        check_equal_reports(scenario);
      }
    }
  }
}

namespace {

struct ExpertsAndSites {
  int experts, sites;
};

/// Numbers of sites that do not divide the copies of the experts of a layer: some sites hold one expert more.
costmodel::Scenario unequal_experts(const ExpertsAndSites& size, int overlap) {
  costmodel::Scenario scenario = tests::ideal_scenario("fomoe", size.sites, overlap);
  scenario.model.experts = size.experts;
  return scenario;
}

/// Where the owners of experts are no blocks of sites, all-reduces with different shares of ports run at the
/// same time, and a site that holds fewer experts may end later than its bytes alone take: within 0.1 %.
void check_each_site(const costmodel::Scenario& scenario) {
  const int overlap = scenario.strategy.expert_overlap;
  const double tolerance = scenario.sites() % overlap == 0 ? 1e-9 : 1e-3;
  const costmodel::RunReport formula = costmodel::closed_form(scenario), report = tests::simulated(scenario);
  for (std::size_t site = 0; site < report.sites.size(); ++site) {
    tests::check_close(report.sites[site].bytes_sent, formula.sites[site].bytes_sent, 1e-12);
    tests::check_close(report.sites[site].bytes_received, formula.sites[site].bytes_received, 1e-12);
    tests::check_close(report.sites[site].compute_s, formula.sites[site].compute_s, 1e-9);
    CHECK(report.sites[site].memory_bytes == formula.sites[site].memory_bytes);
  }
  tests::check_close(report.wall_clock_s, formula.wall_clock_s, tolerance);
  tests::check_close(report.compute_utilization, formula.compute_utilization, tolerance);
  tests::check_close(report.bytes_per_token, formula.bytes_per_token, 1e-12);
  tests::check_close(report.flops_per_token, formula.flops_per_token, 1e-12);
}

}  // namespace

TEST_CASE("unequally many experts: simulated = closed form, for each number of owners") {
  for (const ExpertsAndSites size : {ExpertsAndSites{8, 3}, {64, 3}, {128, 3}, {16, 5}, {16, 6}, {16, 7}}) {
    for (int overlap = 1; overlap <= size.sites; ++overlap) {
      for (const auto collective : {costmodel::Collective::ring, costmodel::Collective::direct}) {
        CAPTURE(size.experts);
        CAPTURE(size.sites);
        CAPTURE(overlap);
        CAPTURE(costmodel::to_string(collective));
        costmodel::Scenario scenario = unequal_experts(size, overlap);
        scenario.strategy.collective = collective;
        check_each_site(scenario);
        // The steps of a site that holds fewer experts are shorter, and it waits.
        scenario.strategy.skip_token = true;
        scenario.compute = costmodel::AssumedDevice{1e11, 0.4};
        check_each_site(scenario);
      }
    }
  }
}

TEST_CASE("sites that skip unequally many tokens: simulated = closed form, and the slowest decides") {
  costmodel::Scenario scenario = tests::ideal_scenario("fomoe", 4, 2);
  scenario.strategy.skip_token = true;
  scenario.compute = costmodel::AssumedDevice{1e11, 0.4};
  const costmodel::RunReport before = tests::simulated(scenario);
  const auto layers = static_cast<int>(scenario.model.layers),
             experts = static_cast<int>(scenario.model.experts);
  costmodel::RoutingCounts& counts = scenario.strategy.routing_counts;
  counts = costmodel::make_routing_counts(layers, experts, 4);
  for (int layer = 0; layer < layers; ++layer) {
    for (int expert = 0; expert < experts; ++expert) {
      for (int site = 0; site < 4; ++site)  // those of its own block more often, at the first site
        counts.at(layer, expert, site) = site == 0 && expert < experts / 2 ? 300 : 100;
    }
  }
  check_each_site(scenario);
  const costmodel::RunReport report = tests::simulated(scenario);
  CHECK(report.sites[0].compute_s > report.sites[1].compute_s);
  CHECK(report.sites[1].compute_s == doctest::Approx(before.sites[1].compute_s).epsilon(1e-9));
  const double longer_s = report.sites[0].compute_s - before.sites[0].compute_s;  // of a round
  REQUIRE(longer_s > 0);
  CHECK(report.wall_clock_s - before.wall_clock_s ==
        doctest::Approx(static_cast<double>(report.round.count) * longer_s).epsilon(1e-6));
}
