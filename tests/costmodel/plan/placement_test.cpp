// Tests of placements: each expert is on O_e workers, each worker has ⌊N_e·O_e/M⌋ or ⌈N_e·O_e/M⌉ distinct
// experts of a layer, in turn, and random placements are unbiased.
#include "costmodel/plan/placement.hpp"

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>
#include <vector>

#include "costmodel/plan/placement_affinity.hpp"
#include "costmodel/plan/site_shares.hpp"

using namespace fomoe::costmodel;

namespace {

void check_constraints(const Placement& placement) {
  const std::int64_t copies = std::int64_t{placement.experts()} * placement.overlap();
  std::vector<std::int64_t> held(static_cast<std::size_t>(placement.workers()), 0);  // in all layers
  for (int layer = 0; layer < placement.layers(); ++layer) {
    for (int expert = 0; expert < placement.experts(); ++expert) {
      const auto owners = placement.owners(layer, expert);
      RC_ASSERT(std::set<int>(owners.begin(), owners.end()).size() ==
                static_cast<std::size_t>(placement.overlap()));
      RC_ASSERT(std::is_sorted(owners.begin(), owners.end()));
      RC_ASSERT(owners.front() >= 0);
      RC_ASSERT(owners.back() < placement.workers());
    }
    for (int worker = 0; worker < placement.workers(); ++worker) {
      const auto local = static_cast<std::int64_t>(placement.local_experts(layer, worker).size());
      RC_ASSERT(local == copies / placement.workers() ||
                (local == copies / placement.workers() + 1 && copies % placement.workers() != 0));
      RC_ASSERT(local ==
                experts_at(placement.experts(), placement.overlap(), placement.workers(), layer, worker));
      held[static_cast<std::size_t>(worker)] += local;
    }
  }
  RC_ASSERT(held.front() - held.back() <= 1);
  RC_ASSERT(std::is_sorted(held.rbegin(), held.rend()));
}

}  // namespace

TEST_CASE("every placement keeps its constraints, up to M = 64 and N_e = 256") {
  const bool ok = rc::check([] {
    const int workers = *rc::gen::inRange(1, 65);
    const int overlap = *rc::gen::inRange(1, workers + 1);
    // N_le is a whole number if N_e is a multiple of M/gcd(M, O_e).
    const int unit = *rc::gen::element(1, workers / std::gcd(workers, overlap));
    const int experts = unit * *rc::gen::inRange(1, 256 / unit + 1), layers = *rc::gen::inRange(1, 6);
    check_constraints(fixed_placement(layers, experts, workers, overlap));
    check_constraints(
        random_placement(layers, experts, workers, overlap, *rc::gen::arbitrary<std::uint64_t>(), 3));
  });
  CHECK(ok);
}

TEST_CASE("8, 64 and 128 experts at three sites, and 16 at five to seven: all placements, for each O_e") {
  struct Size {
    int experts, workers;
  };
  for (const auto [experts, workers] : {Size{8, 3}, {64, 3}, {128, 3}, {16, 5}, {16, 6}, {16, 7}}) {
    RoutingCounts counts = make_routing_counts(4, experts, workers);
    for (std::size_t i = 0; i < counts.counts.size(); ++i)
      counts.counts[i] = static_cast<std::int64_t>(i * i % 17);
    for (int overlap = 1; overlap <= workers; ++overlap) {
      CAPTURE(experts);
      CAPTURE(workers);
      CAPTURE(overlap);
      const bool ok = rc::check([&] {
        check_constraints(fixed_placement(4, experts, workers, overlap));
        check_constraints(affinity_placement(counts, overlap));
        check_constraints(
            random_placement(4, experts, workers, overlap, *rc::gen::arbitrary<std::uint64_t>(), 1));
      });
      CHECK(ok);
    }
  }
}

TEST_CASE("the worker with one expert more changes from layer to layer") {
  // 8 experts, O_e = 2, M = 3: 16 copies. Layer 0 ends with worker 0, so that layer 1 begins with worker 1.
  const Placement placement = fixed_placement(3, 8, 3, 2);
  for (int layer = 0; layer < 3; ++layer) {
    for (int worker = 0; worker < 3; ++worker)
      CHECK(placement.local_experts(layer, worker).size() == (worker == layer ? 6 : 5));
  }
  // Blocks of one worker: 3, 3 and 2 experts, then 3, 2 and 3.
  const Placement blocks = fixed_placement(2, 8, 3, 1);
  CHECK(blocks.local_experts(0, 0) == std::vector<int>{0, 1, 2});
  CHECK(blocks.local_experts(0, 1) == std::vector<int>{3, 4, 5});
  CHECK(blocks.local_experts(0, 2) == std::vector<int>{6, 7});
  CHECK(blocks.local_experts(1, 1) == std::vector<int>{3, 4});
  CHECK(blocks.local_experts(1, 2) == std::vector<int>{5, 6, 7});
}

TEST_CASE("random placement of unequally many experts: 1,000 draws, each pair has probability N_le/N_e") {
  // M = 3, N_e = 8, O_e = 2: in layer 0 worker 0 holds 6 experts, the others 5. Of 1,000 draws, a pair has
  // 750 or 625 with a deviation below 15.4, so that none of 24 pairs is more than 5 deviations away.
  std::vector<int> count(24, 0);
  for (std::uint64_t epoch = 0; epoch < 1000; ++epoch) {
    const Placement placement = random_placement(1, 8, 3, 2, 11, epoch);
    check_constraints(placement);
    for (int expert = 0; expert < 8; ++expert) {
      for (const int owner : placement.owners(0, expert))
        ++count[static_cast<std::size_t>(3 * expert + owner)];
    }
  }
  for (std::size_t pair = 0; pair < count.size(); ++pair)
    CHECK(std::abs(count[pair] - (pair % 3 == 0 ? 750.0 : 625.0)) < 77);
}

TEST_CASE("a reshuffle of unequally many experts replaces n(1 − n/N_e) of the n of a layer") {
  // As above: 6·(1 − 6/8) = 1.5 and 2 · 5·(1 − 5/8) = 3.75 experts in each layer. Each of 2,000 layers has a
  // variance of about 2, so that the mean has a standard error of 0.03.
  const Placement from = random_placement(2000, 8, 3, 2, 1, 0), to = random_placement(2000, 8, 3, 2, 1, 1);
  const double moved = static_cast<double>(migrations(from, to).size()) / 2000;
  CHECK(std::abs(moved - 5.25) < 0.15);
}

TEST_CASE("fixed placement: blocks of consecutive workers where O_e divides M") {
  const Placement placement = fixed_placement(1, 8, 4, 2);
  CHECK(placement.local_experts(0, 0) == std::vector<int>{0, 1, 2, 3});
  CHECK(placement.local_experts(0, 1) == std::vector<int>{0, 1, 2, 3});
  CHECK(placement.local_experts(0, 3) == std::vector<int>{4, 5, 6, 7});
}

TEST_CASE("random placement: each (expert, worker) pair has probability O_e/M (χ², fixed seed)") {
  // 4000 draws of one layer, M = 6, N_e = 9, O_e = 2: each of the 54 pairs is expected 4000/3 times. Within a
  // draw the pairs are dependent (rows sum to 3, columns to 2): (6−1)·(9−1) = 40 degrees of freedom, and the
  // statistic of such a table has mean 40·M·N_e·(1−p)/((M−1)(N_e−1)) ≈ 36 with p = 1/3. χ²(40) exceeds 73.4
  // once in a thousand.
  const int draws = 4000, workers = 6, experts = 9, overlap = 2;
  std::vector<double> count(static_cast<std::size_t>(workers * experts), 0);
  const Placement placement = random_placement(draws, experts, workers, overlap, 7, 0);
  for (int layer = 0; layer < draws; ++layer) {
    for (int expert = 0; expert < experts; ++expert) {
      for (const int owner : placement.owners(layer, expert))
        ++count[static_cast<std::size_t>(expert * workers + owner)];
    }
  }
  const double expected = static_cast<double>(draws) * overlap / workers;
  double chi2 = 0;
  for (const double c : count) chi2 += (c - expected) * (c - expected) / expected;
  CHECK(chi2 < 73.4);
  CHECK(chi2 > 10);  // an even table would not be random either
}

TEST_CASE("the migrated fraction averages 1 − O_e/M") {
  const int workers = 8, experts = 16, overlap = 2, layers = 2000;
  const Placement from = random_placement(layers, experts, workers, overlap, 1, 0);
  const Placement to = random_placement(layers, experts, workers, overlap, 1, 1);
  const double held = static_cast<double>(layers) * experts * overlap;
  const double fraction = static_cast<double>(migrations(from, to).size()) / held;
  // 64,000 dependent draws of probability 0.75 have a standard error below 0.004.
  CHECK(std::abs(fraction - (1 - 2.0 / 8)) < 0.01);
}

TEST_CASE("migration: old owners send, new owners receive, and the busiest sender is near the mean") {
  const Placement from = random_placement(64, 16, 8, 2, 5, 0), to = random_placement(64, 16, 8, 2, 5, 1);
  std::vector<int> sends(8, 0);
  const auto moves = migrations(from, to);
  for (const Migration& move : moves) {
    const auto old_owners = from.owners(move.layer, move.expert),
               new_owners = to.owners(move.layer, move.expert);
    CHECK(std::binary_search(old_owners.begin(), old_owners.end(), move.sender));
    CHECK(!std::binary_search(old_owners.begin(), old_owners.end(), move.receiver));
    CHECK(std::binary_search(new_owners.begin(), new_owners.end(), move.receiver));
    ++sends[static_cast<std::size_t>(move.sender)];
  }
  // In every assignment of senders the maximum is at least the mean.
  const double mean = static_cast<double>(moves.size()) / 8;
  CHECK(*std::max_element(sends.begin(), sends.end()) <= 1.03 * mean);
  CHECK(migrations(from, from).empty());
}

TEST_CASE("the same seed and epoch give the same placement, and epochs differ") {
  const Placement a = random_placement(3, 8, 4, 2, 9, 4), b = random_placement(3, 8, 4, 2, 9, 4),
                  c = random_placement(3, 8, 4, 2, 9, 5);
  int differences = 0;
  for (int layer = 0; layer < 3; ++layer) {
    for (int e = 0; e < 8; ++e) {
      CHECK(std::equal(a.owners(layer, e).begin(), a.owners(layer, e).end(), b.owners(layer, e).begin()));
      differences +=
          std::equal(a.owners(layer, e).begin(), a.owners(layer, e).end(), c.owners(layer, e).begin()) ? 0
                                                                                                       : 1;
    }
  }
  CHECK(differences > 0);
}

TEST_CASE("rotated placement: the fixed blocks, which begin at another worker in each layer") {
  const Placement rotated = rotated_placement(4, 8, 4, 2), fixed = fixed_placement(4, 8, 4, 2);
  check_constraints(rotated);
  for (int expert = 0; expert < 8; ++expert) {
    const auto owners_in = [&](const Placement& placement, int layer) {
      const auto owners = placement.owners(layer, expert);
      return std::vector<int>(owners.begin(), owners.end());
    };
    const int first = 2 * (expert / 4);  // of the fixed block
    CHECK(owners_in(rotated, 0) == owners_in(fixed, 0));
    CHECK(owners_in(rotated, 1) == (first == 0 ? std::vector<int>{1, 2} : std::vector<int>{0, 3}));
    CHECK(owners_in(rotated, 2) == owners_in(fixed, 2));
    CHECK(owners_in(rotated, 3) == owners_in(rotated, 1));
  }
  for (const int workers : {2, 4, 8, 16}) {
    for (int overlap = 1; overlap <= workers; overlap *= 2)
      check_constraints(rotated_placement(5, 16, workers, overlap));
  }
  // Where O_e does not divide M, the sets of the fixed placement differ by layer already.
  CHECK(migrations(rotated_placement(3, 9, 3, 2), fixed_placement(3, 9, 3, 2)).empty());
}
