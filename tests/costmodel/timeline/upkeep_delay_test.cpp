// Tests of the time by which validation, checkpoints and logs make a training longer.
#include "costmodel/timeline/upkeep_delay.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <random>

using namespace fomoe::costmodel;
using doctest::Approx;

namespace {

/// Rounds of two sites that compute, exchange for a second, and do their upkeep before the next round.
std::vector<Interval> two_sites_of(const std::vector<double>& computes_s,
                                   const std::vector<double>& upkeeps_s, std::int64_t rounds) {
  std::vector<Interval> all;
  double begin_s = 0;
  for (std::int64_t round = 0; round < rounds; ++round) {
    double joined_s = 0;
    std::vector<double> ready_s;
    for (std::int32_t node = 0; node < 2; ++node) {
      const auto n = static_cast<std::size_t>(node);
      double at_s = begin_s;
      if (round > 0 && upkeeps_s[n] > 0) {
        all.push_back({node, kNoOp, round, Activity::upkeep, at_s, at_s + upkeeps_s[n]});
        at_s += upkeeps_s[n];
      }
      all.push_back({node, 0, round, Activity::compute, at_s, at_s + computes_s[n]});
      ready_s.push_back(at_s + computes_s[n]);
      joined_s = std::max(joined_s, ready_s.back());
    }
    begin_s = joined_s + 1;
    for (std::int32_t node = 0; node < 2; ++node)
      all.push_back({node, 1, round, Activity::transfer, ready_s[static_cast<std::size_t>(node)], begin_s});
  }
  return all;
}

double delay_s(const std::vector<Interval>& intervals) {
  UpkeepDelay delay(2);
  delay.add(intervals);
  return delay.seconds();
}

}  // namespace

TEST_CASE("upkeep of all sites delays each round after the first one; without upkeep there is no delay") {
  CHECK(delay_s(two_sites_of({4, 4}, {0, 0}, 5)) == 0);
  CHECK(delay_s(two_sites_of({4, 4}, {3, 3}, 5)) == Approx(4 * 3));
}

TEST_CASE("a site that would wait for another one anyway delays nobody with its upkeep") {
  CHECK(delay_s(two_sites_of({2, 6}, {3, 0}, 5)) == Approx(0));
  // Of 5 s, 4 s pass while the other site computes.
  CHECK(delay_s(two_sites_of({2, 6}, {5, 0}, 5)) == Approx(4 * 1));
  // The slow site's upkeep delays the other one.
  CHECK(delay_s(two_sites_of({2, 6}, {0, 3}, 5)) == Approx(4 * 3));
}

TEST_CASE("a run in pieces has the delay of the whole run, which is what the same run takes longer") {
  std::mt19937 random(11);
  std::uniform_real_distribution<double> seconds(0, 5);
  for (int i = 0; i < 20; ++i) {
    const std::vector<double> computes_s = {seconds(random), seconds(random)},
                              upkeeps_s = {seconds(random), seconds(random)};
    const std::vector<Interval> with = two_sites_of(computes_s, upkeeps_s, 9),
                                without = two_sites_of(computes_s, {0, 0}, 9);
    CHECK(delay_s(with) == Approx(with.back().end_s - without.back().end_s));
    UpkeepDelay pieces(2);
    for (const std::int64_t first : {0, 4}) {
      std::vector<Interval> piece;
      std::copy_if(with.begin(), with.end(), std::back_inserter(piece), [&](const Interval& interval) {
        return first == 0 ? interval.round < 4 : interval.round >= 4;
      });
      pieces.add(piece);
    }
    CHECK(pieces.seconds() == Approx(delay_s(with)));
  }
}

TEST_CASE("a transfer that computation hides takes no upkeep away from its site") {
  // Site 0 validates for 3 s and computes while its transfer with site 1 is under way.
  const std::vector<Interval> intervals = {
      {0, kNoOp, 1, Activity::upkeep, 0, 3}, {0, 1, 1, Activity::transfer, 3, 6},
      {0, 0, 1, Activity::compute, 3, 10},   {1, 1, 1, Activity::transfer, 1, 6},
      {1, 0, 1, Activity::compute, 6, 7},
  };
  CHECK(delay_s(intervals) == Approx(3));
}
