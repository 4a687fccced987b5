// Tests of placements: each expert is on O_e workers, each worker has N_le distinct experts, and random
// placements are unbiased.
#include "costmodel/plan/placement.hpp"

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

using namespace fomoe::costmodel;

namespace {

void check_constraints(const Placement& placement) {
  const std::size_t n_le =
      static_cast<std::size_t>(placement.experts() * placement.overlap() / placement.workers());
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
      RC_ASSERT(placement.local_experts(layer, worker).size() == n_le);
    }
  }
}

}  // namespace

TEST_CASE("every legal placement keeps its constraints, up to M = 64 and N_e = 256") {
  const bool ok = rc::check([] {
    const int workers = *rc::gen::inRange(1, 65);
    const int overlap = *rc::gen::inRange(1, workers + 1);
    // N_le is an integer if N_e is a multiple of M/gcd(M, O_e).
    const int unit = workers / std::gcd(workers, overlap);
    const int experts = unit * *rc::gen::inRange(1, 256 / unit + 1);
    check_constraints(fixed_placement(2, experts, workers, overlap));
    check_constraints(
        random_placement(2, experts, workers, overlap, *rc::gen::arbitrary<std::uint64_t>(), 3));
  });
  CHECK(ok);
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
