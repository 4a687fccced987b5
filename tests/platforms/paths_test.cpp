// Tests of Paths: one entry for all pairs, one for each kind of path, and one for each pair give the same
// answers.
#include "platforms/paths.hpp"

#include <doctest/doctest.h>

#include <random>

using namespace fomoe::platforms;

TEST_CASE("paths are what was set last, while kinds are few and when they are many") {
  constexpr int kSites = 90;  // 8010 pairs
  for (const int kinds : {1, 7, 100000}) {
    CAPTURE(kinds);
    std::mt19937 random(5);
    Paths paths(kSites, {0.5});
    std::vector<Path> expected(kSites * kSites, {0.5});
    for (int i = 0; i < 30000; ++i) {
      const int from = static_cast<int>(random() % kSites), to = static_cast<int>(random() % kSites);
      const Path path{0.001 * static_cast<double>(random() % static_cast<unsigned>(kinds)), 1e6, from % 2};
      paths.set(from, to, path);
      expected[static_cast<std::size_t>(from * kSites + to)] = path;
      if (i % 9999 != 0) continue;
      // All paths change together; sets that follow must not bring back the paths of before.
      const auto later = [](Path& changed) { changed.latency_s *= 2; };
      paths.change_all(later);
      for (Path& changed : expected) later(changed);
    }
    CHECK_FALSE(paths.alike());
    bool equal = true;
    for (int from = 0; from < kSites; ++from) {
      for (int to = 0; to < kSites; ++to)
        equal = equal && paths.at(from, to) == expected[static_cast<std::size_t>(from * kSites + to)];
    }
    CHECK(equal);
  }
}

TEST_CASE("ten thousand equal sites need one path, and one odd pair leaves the others alone") {
  Paths paths(10000, {0.01});
  CHECK(paths.alike());
  CHECK(paths.at(9999, 3) == Path{0.01});
  paths.set(3, 9999, {0.01});  // nothing new
  CHECK(paths.alike());
  paths.set(3, 9999, {0.02});
  CHECK(paths.at(3, 9999) == Path{0.02});
  CHECK(paths.at(9999, 3) == Path{0.01});
}
