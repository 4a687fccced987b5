// Tests of affinity placement: it keeps the constraints of every placement and skips the fewest tokens.
#include "costmodel/plan/placement_affinity.hpp"

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <numeric>
#include <set>
#include <vector>

#include "costmodel/plan/site_shares.hpp"

using namespace fomoe::costmodel;

namespace {

RoutingCounts random_counts(int layers, int experts, int workers, int most) {
  RoutingCounts counts = make_routing_counts(layers, experts, workers);
  for (auto& count : counts.counts) count = *rc::gen::inRange(0, most);
  return counts;
}

// The objective: tokens whose expert is elsewhere, plus the migration cost of experts that `previous` lacks.
std::int64_t objective(const RoutingCounts& counts, const Placement& placement, const Placement* previous,
                       std::int64_t migration_cost) {
  std::int64_t sum = 0;
  for (int l = 0; l < counts.layers; ++l) {
    for (int e = 0; e < counts.experts; ++e) {
      const auto owners = placement.owners(l, e);
      for (int w = 0; w < counts.sites; ++w) {
        if (!std::binary_search(owners.begin(), owners.end(), w)) {
          sum += counts.at(l, e, w);
        } else if (previous != nullptr) {
          const auto before = previous->owners(l, e);
          sum += std::binary_search(before.begin(), before.end(), w) ? 0 : migration_cost;
        }
      }
    }
  }
  return sum;
}

// The least objective over all placements of one layer. It tries, expert by expert, every subset of O_e
// workers that still have room.
std::int64_t least(const RoutingCounts& counts, int overlap, const Placement* previous,
                   std::int64_t migration_cost, Placement& trial, std::vector<int>& room, int expert) {
  if (expert == counts.experts) return objective(counts, trial, previous, migration_cost);
  std::int64_t best = -1;
  for (unsigned subset = 0; subset < (1U << counts.sites); ++subset) {
    std::vector<int> owners;
    for (int w = 0; w < counts.sites; ++w) {
      if ((subset >> w & 1U) != 0) owners.push_back(w);
    }
    const bool fits = static_cast<int>(owners.size()) == overlap &&
                      std::all_of(owners.begin(), owners.end(), [&](int w) { return room[w] > 0; });
    if (!fits) continue;
    std::copy(owners.begin(), owners.end(), trial.mutable_owners(0, expert).begin());
    for (const int w : owners) --room[w];
    const std::int64_t found = least(counts, overlap, previous, migration_cost, trial, room, expert + 1);
    for (const int w : owners) ++room[w];
    if (found >= 0 && (best < 0 || found < best)) best = found;
  }
  return best;
}

}  // namespace

TEST_CASE("affinity: each expert is on O_e workers, and each worker has its number of distinct experts") {
  const bool ok = rc::check([] {
    const int workers = *rc::gen::inRange(1, 9);
    const int overlap = *rc::gen::inRange(1, workers + 1);
    const int unit = *rc::gen::element(1, workers / std::gcd(workers, overlap));
    const int experts = unit * *rc::gen::inRange(1, 24 / unit + 2);
    const Placement placement = affinity_placement(random_counts(2, experts, workers, 50), overlap);
    for (int l = 0; l < 2; ++l) {
      for (int e = 0; e < experts; ++e) {
        const auto owners = placement.owners(l, e);
        RC_ASSERT(std::set<int>(owners.begin(), owners.end()).size() == static_cast<std::size_t>(overlap));
        RC_ASSERT(std::is_sorted(owners.begin(), owners.end()));
      }
      for (int w = 0; w < workers; ++w) {
        RC_ASSERT(static_cast<std::int64_t>(placement.local_experts(l, w).size()) ==
                  experts_at(experts, overlap, workers, l, w));
      }
    }
  });
  CHECK(ok);
}

TEST_CASE("affinity: it reaches the optimum over all placements, with the migration cost included") {
  const bool ok = rc::check([] {
    struct Size {
      int workers, experts, overlap;
    };
    const auto [workers, experts, overlap] = *rc::gen::elementOf(std::vector<Size>{
        {2, 4, 1}, {3, 3, 2}, {3, 6, 1}, {4, 4, 2}, {4, 4, 3}, {2, 3, 1}, {3, 5, 1}, {3, 4, 2}, {4, 3, 3}});
    const RoutingCounts counts = random_counts(1, experts, workers, *rc::gen::element(3, 20));
    const Placement previous = random_placement(1, experts, workers, overlap, 3, 0);
    const bool had_one = *rc::gen::arbitrary<bool>();
    const std::int64_t migration_cost = *rc::gen::inRange(0, 15);
    const Placement* before = had_one ? &previous : nullptr;
    const Placement placement = affinity_placement(counts, overlap, before, migration_cost);
    Placement trial(1, experts, workers, overlap);
    std::vector<int> room;
    for (int w = 0; w < workers; ++w)
      room.push_back(static_cast<int>(experts_at(experts, overlap, workers, 0, w)));
    RC_ASSERT(objective(counts, placement, before, migration_cost) ==
              least(counts, overlap, before, migration_cost, trial, room, 0));
  });
  CHECK(ok);
}

TEST_CASE("affinity: with skewed counts it skips no tokens, while the fixed placement skips half") {
  // The tokens of site w choose only experts e with e mod 4 = w. The affinity placement serves all of them.
  // The fixed placement (blocks of two sites with four experts each) has half of the experts that each site
  // needs.
  RoutingCounts counts = make_routing_counts(1, 8, 4);
  for (int e = 0; e < 8; ++e) counts.at(0, e, e % 4) = 100;
  CHECK(skipped_share(counts, affinity_placement(counts, 2)) == 0);
  CHECK(skipped_share(counts, fixed_placement(1, 8, 4, 2)) == doctest::Approx(0.5));
}

TEST_CASE(
    "affinity: a high migration cost keeps the previous placement, and without a cost the counts decide") {
  RoutingCounts counts = make_routing_counts(1, 2, 2);
  counts.at(0, 0, 1) = counts.at(0, 1, 0) = 10;  // each site routes to the other's expert
  const Placement before = fixed_placement(1, 2, 2, 1);
  CHECK(migrations(before, affinity_placement(counts, 1, &before, 0)).size() == 2);
  CHECK(migrations(before, affinity_placement(counts, 1, &before, 9)).size() == 2);
  CHECK(migrations(before, affinity_placement(counts, 1, &before, 11)).empty());
}
