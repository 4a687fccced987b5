// Tests of a router's imbalance: rows of the busiest expert and site, and the dropped and padded shares.
#include "costmodel/model/router_load.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <random>

#include "tests/scenarios.hpp"

using namespace fomoe;
using namespace fomoe::costmodel;

TEST_CASE("uniform: every expert and site has the mean, and nothing is dropped or padded") {
  const LayerLoad load = layer_load(RouterModel::uniform, 0, {}, 8, 4, 1000);
  CHECK(load.busiest_expert == 1);
  CHECK(load.sites == std::vector<double>(4, 1.0));
  CHECK(load.dropped_share == 0);
  CHECK(load.padded_share == 0);
}

TEST_CASE("measured counts 40, 20, 20, 0 on two sites: busiest expert 2, sites 1.5 and 0.5") {
  const LayerLoad load = layer_load(RouterModel::uniform, 0, {40, 20, 20, 0}, 4, 2, 80);
  CHECK(load.busiest_expert == doctest::Approx(2.0));  // 40 ÷ (80/4)
  CHECK(load.sites[0] == doctest::Approx(1.5));        // 60 ÷ (80/2)
  CHECK(load.sites[1] == doctest::Approx(0.5));
  CHECK(load.mean_site_rows() == doctest::Approx(1));
  CHECK(load.busiest_site_rows() == doctest::Approx(1.5));
}

TEST_CASE("capacity 1.25 on counts 40, 20, 20, 0: buffers of 25 rows, 15 dropped rows, 35 empty places") {
  const LayerLoad load = layer_load(RouterModel::uniform, 1.25, {40, 20, 20, 0}, 4, 2, 80);
  CHECK(load.busiest_expert == 1.25);
  CHECK(load.sites == std::vector<double>(2, 1.25));
  CHECK(load.dropped_share == doctest::Approx(15.0 / 80));
  CHECK(load.padded_share == doctest::Approx(35.0 / 100));
}

TEST_CASE("capacity under uniform load: below 1 it drops rows, above 1 it pads buffers") {
  CHECK(layer_load(RouterModel::uniform, 0.8, {}, 8, 4, 1000).dropped_share == doctest::Approx(0.2));
  CHECK(layer_load(RouterModel::uniform, 0.8, {}, 8, 4, 1000).padded_share == doctest::Approx(0));
  CHECK(layer_load(RouterModel::uniform, 1.25, {}, 8, 4, 1000).dropped_share == 0);
  CHECK(layer_load(RouterModel::uniform, 1.25, {}, 8, 4, 1000).padded_share == doctest::Approx(0.2));
}

TEST_CASE("expert choice: buffers are full, whatever the counts") {
  const LayerLoad load = layer_load(RouterModel::expert_choice, 2, {40, 20, 20, 0}, 4, 2, 80);
  CHECK(load.busiest_expert == 2);
  CHECK(load.dropped_share == 0);
  CHECK(load.padded_share == 0);
}

TEST_CASE("hash: the fullest of n bins and the rows beyond a capacity agree with drawn rows") {
  const int experts = 64;
  const double rows = 64 * 1000;
  std::mt19937_64 generator(1);
  double fullest = 0, overflow = 0;
  constexpr int kDraws = 50;
  for (int draw = 0; draw < kDraws; ++draw) {
    std::vector<double> counts(experts, 0.0);
    for (int row = 0; row < rows; ++row) ++counts[generator() % experts];
    double most = 0;
    for (const double count : counts) {
      most = std::max(most, count / 1000);
      overflow += std::max(0.0, count / 1000 - 1.02) / experts / kDraws;
    }
    fullest += most / kDraws;
  }
  // The leading term is 1 + sqrt(2 ln 64 · 64/64000) = 1.091; lower-order terms remove about a fifth of the
  // excess.
  const LayerLoad load = layer_load(RouterModel::hash, 0, {}, experts, 4, rows);
  CHECK(load.busiest_expert == doctest::Approx(1.0912).epsilon(1e-4));
  CHECK(load.busiest_expert - 1 >= fullest - 1);
  CHECK(load.busiest_expert - 1 <= 1.3 * (fullest - 1));
  CHECK(load.mean_site_rows() == doctest::Approx(1));
  // The expectation is σ·φ(z) − (c−1)·Q(z); 50 draws of 64 loads leave about 2 % of noise.
  CHECK(layer_load(RouterModel::hash, 1.02, {}, experts, 4, rows).dropped_share ==
        doctest::Approx(overflow).scale(0).epsilon(0.05));
}

TEST_CASE("hash: the rows beyond a capacity by a table of the normal distribution") {
  // 64 experts of 1000 rows each: σ = 1/√1000. The columns are z, the density φ(z), and the probability Q(z)
  // above z.
  const double deviation = 1 / std::sqrt(1000.0);
  const double table[][3] = {
      {-1, 0.241971, 0.841345}, {0, 0.398942, 0.5}, {1, 0.241971, 0.158655}, {2, 0.0539910, 0.0227501}};
  for (const auto& [z, density, above] : table) {
    const double capacity = 1 + z * deviation;
    CAPTURE(capacity);
    const LayerLoad load = layer_load(RouterModel::hash, capacity, {}, 64, 4, 64 * 1000);
    const double dropped = deviation * (density - z * above);
    CHECK(load.dropped_share == doctest::Approx(dropped).scale(0).epsilon(1e-4));
    CHECK(load.padded_share == doctest::Approx(1 - (1 - dropped) / capacity).scale(0).epsilon(1e-4));
  }
}

TEST_CASE("hash: the fullest site differs from layer to layer") {
  Scenario scenario = tests::ideal_scenario("expert_parallel_wan", 2);
  scenario.strategy.router = RouterModel::hash;
  const std::vector<LayerLoad> loads = router_loads(scenario);
  REQUIRE(loads.size() == 2);
  CHECK(loads[0].sites[0] == loads[1].sites[1]);
  CHECK(loads[0].sites[0] > loads[0].sites[1]);
}
