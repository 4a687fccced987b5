// Some of a platform's sites: given ones, or the best connected.
#pragma once
#include <cstdint>
#include <vector>

#include "platforms/platform.hpp"

namespace fomoe::platforms {

/// The given sites, by their index and in that order, with all that is between them.
Platform chosen_sites(const Platform& all, const std::vector<int>& sites);

struct SiteSets {
  std::vector<std::vector<int>> sets;  // each in rising order; by size, then as found
  bool all = false;                    // every set of `fewest` sites or more is there
  bool exact = true;                   // of its size, the best connected one; else found greedily
};

/// Of each number of sites from `fewest` to all: every set where that makes at most `most_sets` in all, else
/// the best connected one. Seconds of a pair: latency + bytes ÷ min(uplink, path, downlink), the slower
/// direction. The best connected set has the fastest slowest pair, and of these the smallest sum over pairs;
/// it is searched in full where there are at most 20,000 sets of that size, else by leaving out, from all
/// sites on, the one whose absence helps most.
SiteSets sets_of_sites(const Platform& platform, int fewest, double bytes, std::size_t most_sets);

}  // namespace fomoe::platforms
