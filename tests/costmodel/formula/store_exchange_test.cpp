// Tests of the time that sites take to exchange objects through a store, computed by hand.
#include "costmodel/formula/links/store_exchange.hpp"

#include <doctest/doctest.h>

#include "costmodel/formula/closed_form.hpp"
#include "platforms/platform.hpp"
#include "tests/scenarios.hpp"

using namespace fomoe;
using namespace fomoe::costmodel;
using doctest::Approx;

namespace {

/// Sites with 100 B/s up and 50 B/s down, 0.1 s from a store that is no limit.
platforms::Platform equal_sites(int count) {
  platforms::Platform platform = platforms::uniform(count, 100, 50, 0.3);
  platform.store.emplace().latency_s = 0.1;
  return platform;
}

double seconds(const platforms::Platform& platform, const std::array<StoreObjects, 2>& objects) {
  return store_exchange_s(store_links(platforms::with_store_as_site(platform)), objects);
}

/// One object of 1000 B of each site, and results of `result` bytes, or the objects of all others if 0.
std::array<StoreObjects, 2> one_object(double sites, double result) {
  return {StoreObjects{1000, 1, sites, result}, StoreObjects{}};
}

}  // namespace

TEST_CASE("equal sites: two latencies, the payload at the uplink, and what comes back at the downlink") {
  const double up = 0.1 + 1000.0 / 100;
  CHECK(seconds(equal_sites(2), one_object(2, 1000)) == Approx(up + 0.1 + 1000.0 / 50).epsilon(1e-12));
  CHECK(seconds(equal_sites(3), one_object(3, 400)) == Approx(up + 0.1 + 400.0 / 50).epsilon(1e-12));
  // The objects of the two others share the downlink.
  CHECK(seconds(equal_sites(3), one_object(3, 0)) == Approx(up + 0.1 + 2 * 1000.0 / 50).epsilon(1e-12));
}

TEST_CASE("a store that is slower than its sites together: all bytes pass through its ports") {
  platforms::Platform platform = equal_sites(3);
  platform.store->downlink_bytes_per_s = 150;  // of 300 B/s that the sites send
  platform.store->uplink_bytes_per_s = 60;     // of 150 B/s that they receive
  const double up = 0.1 + 3 * 1000.0 / 150;
  CHECK(seconds(platform, one_object(3, 1000)) == Approx(up + 0.1 + 3 * 1000.0 / 60).epsilon(1e-12));
  CHECK(seconds(platform, one_object(3, 0)) == Approx(up + 0.1 + 3 * 2 * 1000.0 / 60).epsilon(1e-12));
}

TEST_CASE("two sites that differ: the one whose upload and download together take longest decides") {
  platforms::Platform platform = equal_sites(2);
  platform.sites[0].uplink_bytes_per_s = 20;    // 50 s up, 20 s down
  platform.sites[1].downlink_bytes_per_s = 25;  // 10 s up, 40 s down: it uploads while the other one is idle
  CHECK(seconds(platform, one_object(2, 1000)) == Approx(0.2 + 50 + 20).epsilon(1e-12));
  platform.sites[1].downlink_bytes_per_s = 12.5;  // 10 s up, 80 s down
  CHECK(seconds(platform, one_object(2, 1000)) == Approx(0.2 + 10 + 80).epsilon(1e-12));
}

TEST_CASE("three sites that differ download each object when it is there") {
  platforms::Platform platform = equal_sites(3);
  platform.sites[0].uplink_bytes_per_s = 200;  // uploaded after 5 s; the others after 10 s and 50 s
  platform.sites[2].uplink_bytes_per_s = 20;
  platform.store->latency_s = 0;
  // Round 1: site 0 has the object of site 1 from 10 s to 30 s, and that of site 2 from 50 s to 70 s. Site
  // 1 has its objects from 5 s to 25 s and from 50 s to 70 s. Site 2 has both objects from 5 s to 45 s, and
  // has uploaded its own at 50 s. Round 2: site 2 uploads from 50 s to 100 s, and the others have its object
  // at 120 s. They have begun at 70 s, so that site 2 has both of theirs from 75 s to 115 s. Round 3: site 2
  // uploads from 115 s to 165 s, and the others have its object at 185 s. Site 2 has theirs at 165 s. Rounds
  // 2 and 3 take 50 s and 65 s, and so do all later ones in turn.
  CHECK(seconds(platform, one_object(3, 0)) == Approx((50.0 + 65.0) / 2).epsilon(1e-9));
}

TEST_CASE(
    "two objects of a site share its links, and the smaller one comes down while the larger one goes up") {
  // 1000 B and 200 B: both at 50 B/s until the smaller one is up after 4 s; the larger one is up after 12 s.
  // The smaller result comes down from 4 s to 8 s, the larger one from 12 s to 32 s.
  platforms::Platform platform = equal_sites(4);
  platform.store->latency_s = 0;
  std::array<StoreObjects, 2> objects = one_object(4, 1000);
  objects[1] = {200, 1, 2, 200};
  CHECK(seconds(platform, objects) == Approx(12 + 20).epsilon(1e-12));
  // Four objects of 50 B are as many flows: all at 20 B/s until they are up after 2.5 s.
  objects[1] = {50, 4, 2, 500};
  // Their results of 2000 B come down from 2.5 s to 42.5 s; from 12 s on, the larger one shares the downlink
  // as one of five flows: 1525 B of the small ones are left, of which 400 pass for each 100 of the large one.
  // All 2525 B have passed at 12 + 2525/50.
  CHECK(seconds(platform, objects) == Approx(12 + 2525.0 / 50).epsilon(1e-9));
}

TEST_CASE("closed form through a store: the round is compute + two latencies + S ÷ uplink + S ÷ downlink") {
  Scenario scenario = tests::through_store(tests::ideal_scenario("diloco", 4), true, 0.2);
  for (platforms::Site& site : scenario.platform.sites) site.downlink_bytes_per_s = 4e9;
  const double payload = 2 * static_cast<double>(count_parameters(scenario.model).total());
  const double expected = 2 * 0.2 + payload / 1e9 + payload / 4e9;
  const RunReport report = closed_form(scenario);
  CHECK(report.round.communication_s == Approx(expected).epsilon(1e-12));
  CHECK(report.wall_clock_s == Approx(12 * (5 + expected)).epsilon(1e-12));
  REQUIRE(report.store);
  CHECK(report.store->bytes_received == Approx(12 * 4 * payload).epsilon(1e-12));
  CHECK(report.store->bytes_sent == Approx(12 * 4 * payload).epsilon(1e-12));
  CHECK(report.sites[0].bytes_sent == Approx(12 * payload).epsilon(1e-12));
  CHECK(approximations(scenario, resolve(scenario)).empty());
}

TEST_CASE("the store's requests and egress are a part of the cost, and it has no GPUs") {
  Scenario scenario = tests::through_store(tests::ideal_scenario("diloco", 4), true);
  scenario.prices.emplace();
  scenario.prices->currency = "USD";
  scenario.prices->sites.assign(4, {});
  for (SitePrices& site : scenario.prices->sites) site.gpu_price_per_s = 3;
  scenario.prices->store = {0.5, 1e-9};
  const double payload = 2 * static_cast<double>(count_parameters(scenario.model).total());
  const RunReport report = closed_form(scenario);
  REQUIRE(report.cost);
  CHECK(report.cost->gpu_cost == Approx(4 * 3 * report.wall_clock_s));
  // 12 rounds, 4 sites: a put and a get of each, and the payload down to each
  const double expected = 12 * 4 * (2 * 0.5 + payload * 1e-9);
  CHECK(report.cost->store_cost == Approx(expected).epsilon(1e-12));
  CHECK(report.cost->cost_total == Approx(report.cost->gpu_cost + expected).epsilon(1e-12));
  CHECK(resolve(scenario).values.cost_total == Approx(report.cost->cost_total).epsilon(1e-12));
}
