// Tests of scenarios whose sites differ in GPUs, step times and parts of the batch.
#include "costmodel/compute/site_times.hpp"

#include <doctest/doctest.h>

#include <cmath>

#include "costmodel/compose/check.hpp"
#include "costmodel/compose/memory_remedy.hpp"
#include "costmodel/compute/operation_seconds.hpp"
#include "costmodel/counts/memory.hpp"
#include "costmodel/formula/closed_form.hpp"
#include "costmodel/formula/outcome.hpp"
#include "costmodel/inputs/at_site.hpp"
#include "costmodel/model/flops.hpp"
#include "costmodel/plan/site_shares.hpp"
#include "platforms/support/input_error.hpp"
#include "tests/differing_sites.hpp"
#include "tests/memory_of.hpp"

using namespace fomoe;
using namespace fomoe::costmodel;
using doctest::Approx;
using tests::differing_scenario;
using tests::Draws;

namespace {

// Three sites with 2, 1 and 4 GPUs of 1, 2 and 3 TFLOP/s at an MFU of 0.4.
Scenario three_sites(const std::string& method) {
  Scenario scenario = tests::ideal_scenario(method, 3);
  scenario.workload.global_batch_sequences = 90;
  scenario.workload.tokens *= 30;
  for (const auto& [gpus, peak] : {std::pair{2, 1e12}, {1, 2e12}, {4, 3e12}}) {
    SiteCompute own;
    own.gpus.count = gpus;
    own.peak_flops = peak;
    own.compute = AssumedDevice{peak, 0.4, 0};
    scenario.site_compute.push_back(own);
  }
  return scenario;
}

double step_flops(const Scenario& scenario, double sequences) {
  return full_replica_flops(scenario.model).total() * sequences *
         static_cast<double>(scenario.model.sequence_length);
}

}  // namespace

TEST_CASE("a step of each site by hand, and the run waits for the slowest") {
  const Scenario scenario = three_sites("diloco");
  const double peak[] = {2 * 1e12, 1 * 2e12, 4 * 3e12};
  for (int site = 0; site < 3; ++site)
    CHECK(site_compute_times(scenario, site).step_s() ==
          Approx(step_flops(scenario, 30) / (0.4 * peak[site])).epsilon(1e-12));
  const RunReport report = closed_form(scenario);
  CHECK(report.round.duration_s - report.round.exposed_communication_s ==
        Approx(5 * step_flops(scenario, 30) / (0.4 * 2e12)).epsilon(1e-12));
  REQUIRE(report.efficiency);
  CHECK(report.efficiency->mfu == Approx(0.4).epsilon(1e-12));
  CHECK(report.efficiency->peak_flops == 16e12);
}

TEST_CASE("a balanced batch: steps take equally long, to one sequence") {
  Scenario scenario = three_sites("diloco");
  scenario.platform.sites[1].compute_factor = 2;
  scenario.workload.batch_shares = balanced_shares(scenario);
  // In proportion to 2, 2/2 and 12 TFLOP/s: 12, 6 and 72 of 90 sequences.
  CHECK(local_batch_sequences(scenario, 0) == 12);
  CHECK(local_batch_sequences(scenario, 1) == 6);
  CHECK(local_batch_sequences(scenario, 2) == 72);
  CHECK(site_compute_times(scenario, 0).step_s() ==
        Approx(2 * site_compute_times(scenario, 1).step_s()).epsilon(1e-12));
  CHECK(closed_form(scenario).round.idle_s == Approx(0).epsilon(1e-9));
  std::get<AssumedDevice>(scenario.site_compute[0].compute).mfu = 0.2;
  CHECK(closed_form(scenario).round.idle_s > 0.1);

  scenario.site_compute[2].compute = GivenStepTime{1};
  CHECK_THROWS_WITH_AS(balanced_shares(scenario), doctest::Contains("with compute.step_time"), InputError);
}

TEST_CASE("parts of a batch: each within one sequence of its share, together the batch") {
  Draws draws(51);
  for (int i = 0; i < 200; ++i) {
    Scenario scenario = tests::ideal_scenario("diloco", 1 + draws.below(12));
    scenario.workload.global_batch_sequences = 100 + draws.below(i % 2 == 0 ? 1000 : 1'000'000'000);
    double all = 0;
    for (int site = 0; site < scenario.sites(); ++site) {
      scenario.workload.batch_shares.push_back(i % 3 == 0 ? 1 + draws.below(4) : draws.between(0.1, 10));
      all += scenario.workload.batch_shares.back();
    }
    std::int64_t sum = 0;
    for (int site = 0; site < scenario.sites(); ++site) {
      const std::int64_t part = local_batch_sequences(scenario, site);
      sum += part;
      const double exact = static_cast<double>(scenario.workload.global_batch_sequences) *
                           scenario.workload.batch_shares[static_cast<std::size_t>(site)] / all;
      CHECK(std::abs(static_cast<double>(part) - exact) < 1);
    }
    CHECK(sum == scenario.workload.global_batch_sequences);
  }
}

TEST_CASE("memory and cost of sites that differ") {
  Scenario scenario = three_sites("diloco");
  scenario.site_compute[0].gpus.gpu_memory_bytes = 200e9;
  scenario.site_compute[1].gpus.gpu_memory_bytes = 1e9;  // the fullest
  scenario.site_compute[2].gpus.gpu_memory_bytes = 100e9;
  scenario.site_compute[2].gpus.sharded = 4;
  CHECK(fullest_site(scenario) == 1);
  CHECK(fullest_gpu(scenario).available == 1e9);
  CHECK(
      memory_problem(scenario).starts_with("does not fit: a GPU of site " + scenario.platform.sites[1].name));
  scenario.site_compute[1].gpus.gpu_memory_bytes = 1000e9;
  CHECK(fullest_site(scenario) != 1);
  CHECK(memory_problem(scenario).empty());
  const RunReport report = closed_form(scenario);
  CHECK(report.sites[2].memory_bytes == Approx(memory_per_site(AtSite(scenario, 2)).total()));

  scenario.prices =
      Prices{"USD", "", {{{}, 1, 0, 0, {}, {}}, {{}, 2, 0, 0, {}, {}}, {{}, 5, 0, 0, {}, {}}}, {}};
  const RunReport priced = closed_form(scenario);
  CHECK(priced.cost->cost_total == Approx(priced.wall_clock_s * (2 * 1 + 1 * 2 + 4 * 5)).epsilon(1e-12));
}

TEST_CASE("a sweep of sites that differ equals the closed form of each scenario") {
  Draws draws(52);
  for (int i = 0; i < 200; ++i) {
    CAPTURE(i);
    const auto& all = methods();
    const Method& method = all[static_cast<std::size_t>(draws.below(static_cast<int>(all.size())))];
    Scenario scenario = differing_scenario(method.name, 2 + draws.below(6), draws);
    if (draws.chance(0.3)) scenario.workload.batch_shares.clear();
    if (draws.chance(0.3)) scenario.site_compute.clear();
    scenario.prices =
        Prices{"USD", "", std::vector<SitePrices>(static_cast<std::size_t>(scenario.sites())), {}};
    for (SitePrices& site : scenario.prices->sites) site.gpu_price_per_s = draws.between(1, 5);
    if (draws.chance(0.5)) {
      tests::change_each_path(scenario.platform,
                              [&](platforms::Path& path) { path.latency_s = draws.between(0.1, 0.5); });
      scenario.network.latency_factor = draws.between(1, 3);
    }
    const Outcome outcome = outcome_of(resolve(scenario));
    const RunReport report = closed_form(scenario);
    CAPTURE(method.name);
    CHECK(outcome.wall_clock_s == Approx(report.wall_clock_s).epsilon(1e-12));
    CHECK(outcome.round_compute_s == Approx(report.round.compute_s).epsilon(1e-12));
    CHECK(outcome.cost_total == Approx(report.cost->cost_total).epsilon(1e-12));
    CHECK(outcome.energy_kwh == Approx(*report.cost->energy_kwh).epsilon(1e-12));
    CHECK(outcome.memory_bytes_per_gpu == Approx(fullest_gpu(scenario).needed).epsilon(1e-12));
    CHECK(outcome.gpu_memory_bytes == Approx(fullest_gpu(scenario).available));
  }
}

TEST_CASE("parts of the batch that differ are refused where sites compute each other's tokens") {
  for (const Method& method : methods()) {
    CAPTURE(method.name);
    Scenario scenario = tests::ideal_scenario(method.name, 4);
    scenario.compute = AssumedDevice{1e12, 0.4, 0};
    scenario.workload.global_batch_sequences = 64;
    scenario.workload.tokens *= 16;
    scenario.model.layers = 8;  // pipeline_wan has at most one site for each layer
    check(scenario);
    scenario.workload.batch_shares = {1, 2, 3, 4};
    if (method.residency == Residency::experts_sharded || method.residency == Residency::sharded)
      CHECK_THROWS_AS(check(scenario), InputError);
    else
      CHECK_NOTHROW(check(scenario));
  }
  Scenario scenario = tests::ideal_scenario("diloco", 2);
  scenario.workload.global_batch_sequences = 8;
  scenario.workload.batch_shares = {1, 100};
  CHECK_THROWS_WITH_AS(check(scenario), doctest::Contains("enough sequences to give one to"), InputError);
}

TEST_CASE("the origins of step times name their sites, also if one name ends like another") {
  Scenario scenario = three_sites("diloco");
  const char* names[] = {"aws:east", "east", "west"};
  for (std::size_t site = 0; site < 3; ++site) {
    scenario.platform.sites[site].name = names[site];
    scenario.site_compute[site].catalogue = {{"peak", Origin::assumed, site < 2 ? "old" : "new"}};
  }
  std::string stated;
  for (const Provenance& row : compute_provenance(scenario, site_times(scenario, counts_of(scenario))))
    if (row.what.starts_with("peak")) stated += row.what + "; ";
  CHECK(stated == "peak (aws:east, east); peak (west); ");
}

TEST_CASE("the MFU of a run whose sites have one sequence each is that of the sites") {
  Scenario scenario = three_sites("diloco");
  scenario.workload.global_batch_sequences = 3;
  const std::optional<RunEfficiency> efficiency =
      run_efficiency(scenario, site_times(scenario, counts_of(scenario)));
  REQUIRE(efficiency.has_value());
  CHECK(efficiency->mfu == Approx(0.4).epsilon(1e-12));
}
