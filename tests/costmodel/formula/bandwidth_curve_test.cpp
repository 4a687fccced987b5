// Tests of bandwidth_curve(): the wall clock as a function of one factor on the rates of all links.
#include "costmodel/formula/bandwidth_curve.hpp"

#include <doctest/doctest.h>

#include "costmodel/formula/closed_form.hpp"
#include "tests/scenarios.hpp"

using namespace fomoe;
using namespace fomoe::costmodel;

TEST_CASE(
    "bandwidth curve by hand: 60 s of compute, and transfers that take 1/f of the time at f times the rate") {
  Scenario scenario = tests::ideal_scenario("diloco", 2);
  const double transfers_s = closed_form(scenario).wall_clock_s - 60;
  REQUIRE(transfers_s > 0);
  const std::vector<BandwidthPoint> curve = bandwidth_curve(scenario);
  REQUIRE(curve.size() == 17);
  CHECK(curve.front().rate_factor == 1.0 / 16);
  CHECK(curve[8].rate_factor == 1);
  CHECK(curve.back().rate_factor == 16);
  for (const BandwidthPoint& point : curve) {
    const double expected_s = 60 + transfers_s / point.rate_factor;
    CHECK(point.wall_clock_s == doctest::Approx(expected_s).epsilon(1e-12));
    CHECK(point.compute_utilization == doctest::Approx(60 / expected_s).epsilon(1e-12));
  }
}

TEST_CASE("bandwidth curve: the latency does not fall as rates rise, and prices do not change the curve") {
  Scenario scenario = tests::ideal_scenario("diloco", 2);
  scenario.platform = platforms::uniform(2, 1e9, 1e9, 0.05);
  const std::vector<BandwidthPoint> curve = bandwidth_curve(scenario);
  // 12 rounds, each with 2(M − 1) = 2 hops of 50 ms.
  CHECK(curve.back().wall_clock_s > 60 + 12 * 2 * 0.05);
  scenario.prices.emplace();
  scenario.failures.emplace();
  CHECK(bandwidth_curve(scenario).back().wall_clock_s == curve.back().wall_clock_s);
}
