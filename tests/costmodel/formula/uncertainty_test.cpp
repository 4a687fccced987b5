// Tests of the wall clock's uncertainty, which follows from the spread of the inputs.
#include "costmodel/formula/uncertainty.hpp"

#include <doctest/doctest.h>

#include <cmath>

#include "costmodel/formula/closed_form.hpp"
#include "costmodel/formula/resolved.hpp"
#include "costmodel/math/quantiles.hpp"
#include "tests/scenarios.hpp"

using namespace fomoe;
using namespace fomoe::costmodel;

namespace {

/// 60 steps of two sites. A step is one micro-batch of one sequence, and the profile has the given samples of
/// its time.
Scenario profiled(const std::vector<double>& forward_s) {
  Scenario scenario = tests::ideal_scenario("diloco", 2);
  StepProfile profile;
  profile.model = scenario.model;
  ProfilePoint point;
  point.micro_batch_sequences = 1;
  point.local_experts = scenario.model.experts;
  for (const double seconds : forward_s) point.samples.push_back({seconds, 0, 0});
  profile.points.push_back(point);
  scenario.compute = ProfiledCompute{profile, 1};
  return scenario;
}

}  // namespace

TEST_CASE("an input that is given without a spread has none") {
  CHECK(known_spread(tests::ideal_scenario("diloco", 2), 100).empty());
  CHECK(known_spread(profiled({1.0}), 100).empty());  // one sample does not give a spread
  CHECK(in_quadrature({}, 100).low == 100);
  CHECK(in_quadrature({}, 100).high == 100);
}

TEST_CASE("measured steps by hand: 0.9, 1.0 and 1.4 s") {
  const Scenario scenario = profiled({0.9, 1.0, 1.4});
  const double answer_s = closed_form(scenario).wall_clock_s;
  const std::vector<Uncertainty> list = known_spread(scenario, answer_s);
  REQUIRE(list.size() == 1);
  CHECK(list[0].input == "measured step time");
  CHECK(list[0].unit == "s");
  // The answer has 60 steps of the median, 1 s. Three values are too few to leave any of them out.
  CHECK(list[0].low == 0.9);
  CHECK(list[0].high == 1.4);
  CHECK(list[0].wall_clock_low_s == doctest::Approx(answer_s - 60 * 0.1).epsilon(1e-12));
  CHECK(list[0].wall_clock_high_s == doctest::Approx(answer_s + 60 * 0.4).epsilon(1e-12));
}

TEST_CASE("steps of which another program slowed some down: the interval contains the answer") {
  // The answer uses the median, 1.0095 s. The mean is 1.4047 s, and Student's t gives 1.170 to 1.639 s.
  std::vector<double> steps_s;
  for (int i = 0; i < 12; ++i) steps_s.push_back(1 + 1e-3 * i);
  for (int i = 0; i < 8; ++i) steps_s.push_back(2 + 1e-3 * i);
  const Scenario scenario = profiled(steps_s);
  const double answer_s = closed_form(scenario).wall_clock_s;
  const std::vector<Uncertainty> list = known_spread(scenario, answer_s);
  REQUIRE(list.size() == 1);
  CHECK(list[0].low == doctest::Approx(1.005).epsilon(1e-12));   // the sixth smallest of 20
  CHECK(list[0].high == doctest::Approx(2.002).epsilon(1e-12));  // the sixth largest
  CHECK(list[0].wall_clock_low_s < answer_s);
  CHECK(list[0].wall_clock_high_s > answer_s);
}

TEST_CASE("ranks of the interval of a median: the usual table") {
  for (const auto& [count, rank] :
       {std::pair{5, 1}, {6, 1}, {8, 1}, {9, 2}, {10, 2}, {20, 6}, {50, 18}, {100, 40}}) {
    std::vector<double> values;
    for (int i = 1; i <= count; ++i) values.push_back(i);
    CAPTURE(count);
    CHECK(median_interval(values).low == rank);
    CHECK(median_interval(values).high == count + 1 - rank);
  }
  std::vector<double> many;
  for (int i = 1; i <= 10'000; ++i) many.push_back(i);
  CHECK(median_interval(many).low == 4902);  // (10,000 − 1.96 · 100) ÷ 2
}

TEST_CASE("steps drawn from the samples: the answer uses their mean, and each run draws its own steps") {
  Scenario scenario = profiled({0.9, 1.0, 1.4});
  scenario.variation.from_samples = true;
  const double compute_s = 60;  // the closed form's compute time, from the median
  const std::vector<Uncertainty> list = known_spread(scenario, 1000);
  REQUIRE(list.size() == 2);
  const double half = 4.3027 * std::sqrt(0.07 / 3) / 1.1;
  CHECK(list[0].wall_clock_high_s - 1000 == doctest::Approx(compute_s * half).epsilon(1e-9));
  CHECK(1000 - list[0].wall_clock_low_s == doctest::Approx(compute_s * half).epsilon(1e-9));
  // A round of five steps, at one of two sites, as of many runs; the variance of a draw with replacement is
  // Σ (x − 1.1)² ÷ 3. The larger of two nearly normal values has 1 − 1/π of the variance of one.
  const double drawn = 1.959964 * std::sqrt((1 - 1 / std::acos(-1.0)) * 0.14 / 3 / 60);
  CHECK(list[1].input == "step time variation");
  CHECK(list[1].high == doctest::Approx(1 + drawn).epsilon(0.15 * drawn));
  CHECK(list[1].wall_clock_high_s - 1000 == doctest::Approx(compute_s * (list[1].high - 1)).epsilon(1e-9));
}

TEST_CASE("step time variation: rounds are as long as the steps of their slowest site") {
  Scenario scenario = tests::ideal_scenario("ddp", 2);
  scenario.variation.coefficient = 0.01;
  std::vector<Uncertainty> list = known_spread(scenario, 1000);
  REQUIRE(list.size() == 1);
  const double half = 1.959964 * 0.01 / std::sqrt(60.0);
  CHECK(list[0].high - 1 == doctest::Approx(std::sqrt(1 - 1 / std::acos(-1.0)) * half).epsilon(0.1));
  CHECK(1000 - list[0].wall_clock_low_s == doctest::Approx(60 * (list[0].high - 1)));
  // One step in 200 takes five times as long, at each of eight sites: q of the steps of a run do. One site
  // alone would vary by a third of that.
  scenario = tests::ideal_scenario("ddp", 8);
  scenario.variation.straggler_share = 0.005;
  scenario.variation.straggler_factor = 5;
  list = known_spread(scenario, 1000);
  const double q = 1 - std::pow(0.995, 8), mean = 1.02, steps = 60;
  const double deviation = 4 * std::sqrt(q * (1 - q));
  CHECK(list[0].high - 1 == doctest::Approx(1.959964 * deviation / mean / std::sqrt(steps)).epsilon(0.3));
  CHECK(list[0].wall_clock_high_s == doctest::Approx(1000 + steps * mean * (list[0].high - 1)));
}

TEST_CASE("a straggler for the whole run is one draw: a run has one or none, and never less than no time") {
  Scenario scenario = tests::ideal_scenario("diloco", 8);
  scenario.variation.straggler_share = 0.05;
  scenario.variation.straggler_factor = 5;
  scenario.variation.straggler_lasts = StragglerLasts::run;
  std::vector<Uncertainty> list = known_spread(scenario, 1000);
  CHECK(list[0].low == doctest::Approx(1 / 1.2).epsilon(1e-12));
  CHECK(list[0].high == doctest::Approx(5 / 1.2).epsilon(1e-12));
  // Of the rounds, whole numbers on both sides of the mean share of 0.337.
  scenario.variation.straggler_lasts = StragglerLasts::round;
  const double any = 1 - std::pow(0.95, 8);
  list = known_spread(scenario, 1000);
  const double rounds = resolve(scenario).plan.rounds;
  CAPTURE(rounds);
  const double least = std::round((list[0].low * 1.2 - 1) / 4 * rounds),
               most = std::round((list[0].high * 1.2 - 1) / 4 * rounds);
  CHECK(list[0].low == doctest::Approx((1 + 4 * least / rounds) / 1.2).epsilon(1e-12));
  CHECK(least < any * rounds);
  CHECK(most > any * rounds);
}

TEST_CASE("jitter lies above an answer of the closed form, which has none") {
  Scenario scenario = tests::ideal_scenario("diloco", 2);
  scenario.network.jitter_s = 0.01;
  const Uncertainty simulated = known_spread(scenario, 1000).front();
  const Uncertainty closed_form = known_spread(scenario, 1000, false).front();
  CHECK(simulated.wall_clock_low_s < 1000);
  CHECK(closed_form.wall_clock_low_s > 1000);
  // A latency of a round lasts as long as one draw, or as the later of two, whose mean is ⅔ of the jitter.
  const double half_s = 1000 - simulated.wall_clock_low_s;
  CHECK(closed_form.wall_clock_low_s == doctest::Approx(1000 + 12 * 2 * 0.01 / 2 - half_s));
  CHECK(closed_form.wall_clock_high_s == doctest::Approx(1000 + 12 * 2 * 0.01 * 2 / 3 + half_s));
}

TEST_CASE("jitter by hand: 12 rounds, each of which waits for two latencies of a ring of two") {
  Scenario scenario = tests::ideal_scenario("diloco", 2);
  scenario.network.jitter_s = 0.01;
  scenario.network.latency_factor = 3;  // applies to latencies, not to jitter
  std::vector<Uncertainty> list = known_spread(scenario, 1000);
  REQUIRE(list.size() == 1);
  // A uniform draw has variance J²/12, and the run has 24 draws.
  const double half_s = 1.959964 * 0.01 / std::sqrt(12.0) / std::sqrt(24.0);
  CHECK(list[0].low == doctest::Approx(0.005 - half_s).epsilon(1e-9));
  CHECK(list[0].high == doctest::Approx(0.005 + half_s).epsilon(1e-9));
  CHECK(list[0].wall_clock_high_s - 1000 == doctest::Approx(24 * half_s).epsilon(1e-6));
  // Two draws lie between 0 and J, and so does the interval, although the normal distribution extends beyond.
  scenario.workload.tokens /= 12;
  scenario.network.jitter_s = 0.01;
  list = known_spread(scenario, 1000);
  CHECK(list[0].low >= 0);
  CHECK(list[0].high <= 0.01);
}

TEST_CASE("queues by hand: 12 rounds, each of which waits for two latencies") {
  Scenario scenario = tests::ideal_scenario("diloco", 2);
  CHECK(known_spread(scenario, 1000).empty());
  for (platforms::Site& site : scenario.platform.sites) site.queue_s = 0.05;
  const std::vector<Uncertainty> list = known_spread(scenario, 1000);
  REQUIRE(list.size() == 1);
  CHECK(list[0].wall_clock_low_s == 1000);
  CHECK(list[0].wall_clock_high_s == doctest::Approx(1000 + 24 * 0.05).epsilon(1e-9));
  // Of a ring of two, each step waits for the slower direction.
  scenario.platform.sites[1].queue_s = 0.02;
  const std::vector<Uncertainty> unequal = known_spread(scenario, 1000);
  REQUIRE(unequal.size() == 1);
  CHECK(unequal[0].high == 0.05);
  CHECK(unequal[0].wall_clock_high_s == doctest::Approx(1000 + 24 * 0.05).epsilon(1e-9));
}

TEST_CASE("queues are added to the latencies of links, and the latency factor does not multiply them") {
  Scenario scenario = tests::ideal_scenario("diloco", 2);
  scenario.platform = platforms::uniform(2, 1e9, 1e9, 0.3);
  scenario.network.latency_factor = 2;
  for (platforms::Site& site : scenario.platform.sites) site.queue_s = 0.05;
  const std::vector<Uncertainty> list = known_spread(scenario, 1000);
  REQUIRE(list.size() == 1);
  CHECK(list[0].low == 0);
  CHECK(list[0].high == 0.05);
  CHECK(list[0].wall_clock_high_s == doctest::Approx(1000 + 24 * 0.05).epsilon(1e-9));
}

TEST_CASE("in quadrature: 3 and 4 s above are 5 s, and 12 and 5 s below are 13 s") {
  const Interval95 all =
      in_quadrature({{"a", "", 0, 0, 88, 103, "", ""}, {"b", "", 0, 0, 104, 95, "", ""}}, 100);
  CHECK(all.high == doctest::Approx(105));
  CHECK(all.low == doctest::Approx(87));
  // An interval that does not contain the answer moves one end only.
  const Interval95 above = in_quadrature({{"a", "", 0, 0, 103, 110, "", ""}}, 100);
  CHECK(above.low == 100);
  CHECK(above.high == 110);
}
