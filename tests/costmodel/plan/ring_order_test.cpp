// Tests of best_ring(): optimal for few sites, and never worse than the given order for many.
#include "costmodel/plan/ring_order.hpp"

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <numeric>

#include "tests/scenarios.hpp"

using namespace fomoe;
using costmodel::HopTimes;
using costmodel::NodeId;

namespace {

std::vector<NodeId> up_to(int nodes) {
  std::vector<NodeId> ring(static_cast<std::size_t>(nodes));
  std::iota(ring.begin(), ring.end(), 0);
  return ring;
}

HopTimes random_hops(int nodes) {
  HopTimes times{nodes, {}};
  times.seconds = *rc::gen::container<std::vector<double>>(
      static_cast<std::size_t>(nodes * nodes),
      rc::gen::map(rc::gen::inRange(1, 1000), [](int ms) { return 0.001 * ms; }));
  return times;
}

}  // namespace

TEST_CASE("best ring, by exhaustion: no permutation of up to 7 sites has a faster slowest hop") {
  const bool ok = rc::check([] {
    const int nodes = *rc::gen::inRange(3, 8);
    const HopTimes times = random_hops(nodes);
    double best_s = 1e300;
    std::vector<NodeId> ring = up_to(nodes);
    do {
      best_s = std::min(best_s, costmodel::slowest_hop_s(times, ring));
    } while (std::next_permutation(ring.begin() + 1, ring.end()));
    const std::vector<NodeId> found = costmodel::best_ring(times, up_to(nodes));
    RC_ASSERT(costmodel::slowest_hop_s(times, found) == best_s);
    RC_ASSERT(std::is_permutation(found.begin(), found.end(), up_to(nodes).begin()));
  });
  CHECK(ok);
}

TEST_CASE("best ring of more than 16 sites: it is a permutation, and never worse than the given order") {
  const bool ok = rc::check([] {
    const int nodes = *rc::gen::inRange(17, 30);
    const HopTimes times = random_hops(nodes);
    const std::vector<NodeId> found = costmodel::best_ring(times, up_to(nodes));
    RC_ASSERT(std::is_permutation(found.begin(), found.end(), up_to(nodes).begin()));
    RC_ASSERT(costmodel::slowest_hop_s(times, found) <= costmodel::slowest_hop_s(times, up_to(nodes)));
  });
  CHECK(ok);
}

TEST_CASE("best ring of 16 sites on two continents crosses the sea twice, whatever the given order") {
  // Even sites are on one side, odd ones on the other: 1 s within a side, 1.5 s over two good crossings, 9 s
  // over the others.
  HopTimes times{16, std::vector<double>(256, 9)};
  const auto set = [&](int from, int to, double seconds) {
    times.seconds[static_cast<std::size_t>(from * 16 + to)] = seconds;
  };
  for (int a = 0; a < 16; ++a) {
    for (int b = 0; b < 16; ++b) {
      if (a % 2 == b % 2) set(a, b, 1);
    }
  }
  set(4, 7, 1.5);
  set(9, 2, 1.5);
  CHECK(costmodel::slowest_hop_s(times, up_to(16)) == 9);
  CHECK(costmodel::slowest_hop_s(times, costmodel::best_ring(times, up_to(16))) == 1.5);
}

TEST_CASE("best ring of 40 sites, four of them far away: no hop joins two far sites") {
  // Hops between two far sites take 9 s, between a far one and another 4 s, others 1 s. The given order has
  // the far sites next to each other.
  HopTimes times{40, std::vector<double>(1600, 1)};
  for (int a = 0; a < 40; ++a) {
    for (int b = 0; b < 40; ++b)
      times.seconds[static_cast<std::size_t>(a * 40 + b)] = a < 4 && b < 4 ? 9 : a < 4 || b < 4 ? 4 : 1;
  }
  CHECK(costmodel::slowest_hop_s(times, costmodel::best_ring(times, up_to(40))) == 4);
}

TEST_CASE(
    "best ring of 40 sites: the slowest hop counts before the sum of all hops, in seconds or in "
    "microseconds") {
  // Four far sites next to each other would have the smaller sum, 3 · 5 + 2 · 4 + 35 = 58 instead of 8 · 4 +
  // 32 = 64, and a hop of 5.
  for (const double unit_s : {1.0, 1e-3, 1e-6}) {
    CAPTURE(unit_s);
    HopTimes times{40, std::vector<double>(1600, unit_s)};
    for (int a = 0; a < 40; ++a) {
      for (int b = 0; b < 40; ++b)
        times.seconds[static_cast<std::size_t>(a * 40 + b)] = unit_s * (a < 4 && b < 4   ? 5
                                                                        : a < 4 || b < 4 ? 4
                                                                                         : 1);
    }
    CHECK(costmodel::slowest_hop_s(times, costmodel::best_ring(times, up_to(40))) == 4 * unit_s);
  }
}

TEST_CASE("best ring of 40 sites: a one-way circle is found whatever the given order") {
  constexpr int kSites = 40;
  HopTimes times{kSites, std::vector<double>(kSites * kSites, 9)};
  for (int i = 0; i < kSites; ++i)  // 0 → 7 → 14 → … → 33 → 0
    times.seconds[static_cast<std::size_t>(7 * i % kSites * kSites + 7 * (i + 1) % kSites)] = 1;
  CHECK(costmodel::slowest_hop_s(times, costmodel::best_ring(times, up_to(kSites))) == 1);
}
