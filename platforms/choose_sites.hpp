// Selects a subset of a platform's sites: given sites, or the best connected ones.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "platforms/platform.hpp"

namespace fomoe::platforms {

/// Which sites of a file a scenario uses: those with these names, or that match patterns with * for any
/// characters; without names, the first ones; otherwise all.
struct UsedSites {
  std::vector<std::string> names = {};
  std::optional<int> first = {};
  [[nodiscard]] bool has(const std::string& name, int index) const;
};

/// The platform that consists of the given sites (indices, in this order), the paths between them and their
/// changes over time.
Platform chosen_sites(const Platform& all, const std::vector<int>& sites);

struct SiteSets {
  std::vector<std::vector<int>> sets;  // site indices in rising order; smaller sets first
  bool all = false;                    // whether `sets` holds every set of `fewest` or more sites
  bool exact = true;  // whether each set is surely the best of its size; false if some were found greedily
};

/// Candidate sets of sites, of every size from `fewest` to all sites. Returns every such set if there are at
/// most `most_sets` of them, else the best connected set of each size. The cost of a pair is, for the slower
/// direction and in seconds, latency + bytes ÷ min(uplink, path, downlink). The best connected set has the
/// least cost of its slowest pair, and among equals the least sum of costs. It is found by exhaustive search
/// if there are at most 20,000 sets of its size. Otherwise it is found greedily: from the next larger set,
/// the site is removed whose absence helps most.
SiteSets sets_of_sites(const Platform& platform, int fewest, double bytes, std::size_t most_sets);

}  // namespace fomoe::platforms
