// Tests the choice of a subset of a platform's sites.
#include "platforms/choose_sites.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <vector>

namespace {

using namespace fomoe::platforms;

/// Sites on a line, with a latency of one second per step. The best connected sites are neighbours.
Platform line(int count) {
  Platform platform = uniform(count, 1e9, 1e9, 0);
  for (int i = 0; i < count; ++i) {
    for (int j = 0; j < count; ++j) platform.set_latency(i, j, i < j ? j - i : i - j);
  }
  return platform;
}

}  // namespace

TEST_CASE("chosen sites keep their paths and their changes over time") {
  Platform all = line(4);
  all.set_path_rate(1, 3, 5e6);
  all.changes = {{1, LinkChange::Link::uplink, 3, 3, 1e6, {}},
                 {2, LinkChange::Link::path, 0, 1, 1e6, {}},
                 {3, LinkChange::Link::path, 3, 1, 2e6, {}}};
  const Platform two = chosen_sites(all, {3, 1});
  REQUIRE(two.size() == 2);
  CHECK(two.sites[0].name == "site-3");
  CHECK(two.path(1, 0).bandwidth_bytes_per_s == 5e6);
  CHECK(two.path(0, 1).latency_s == 2);
  REQUIRE(two.changes.size() == 2);  // the change of the path to site 0 is dropped
  CHECK(two.changes[0].from == 0);
  CHECK(two.changes[1].from == 0);
  CHECK(two.changes[1].to == 1);
}

TEST_CASE("few sites: every set; more: the best connected of each number") {
  const SiteSets all = sets_of_sites(line(4), 2, 0, 16);
  CHECK(all.all);
  CHECK(all.sets.size() == 6 + 4 + 1);
  CHECK(all.sets.front() == std::vector<int>{0, 1});
  CHECK(all.sets.back() == std::vector<int>{0, 1, 2, 3});

  Platform six = line(6);
  // The middle pair has very little bandwidth: 1e9 bytes take 1000 s between these two sites.
  six.set_path_rate(2, 3, 1e6);
  six.set_path_rate(3, 2, 1e6);
  const SiteSets best = sets_of_sites(six, 2, 1e9, 16);
  CHECK_FALSE(best.all);
  CHECK(best.exact);
  REQUIRE(best.sets.size() == 5);
  CHECK(best.sets[0] == std::vector<int>{0, 1});     // 1 s + 1 s
  CHECK(best.sets[1] == std::vector<int>{0, 1, 2});  // not {1, 2, 3}
  CHECK(best.sets[4].size() == 6);
}

TEST_CASE("many sites: greedily, and it says so; a far site is left out first") {
  Platform many = line(24);
  for (int i = 0; i < 24; ++i) {
    if (i == 7) continue;
    many.set_latency(i, 7, 100);
    many.set_latency(7, i, 100);
  }
  const SiteSets found = sets_of_sites(many, 2, 0, 16);
  CHECK_FALSE(found.exact);
  REQUIRE(found.sets.size() == 23);
  for (const std::vector<int>& set : found.sets) {
    const bool has_far_site = std::find(set.begin(), set.end(), 7) != set.end();
    CHECK(has_far_site == (set.size() == 24));
  }
}
