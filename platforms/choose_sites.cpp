#include "platforms/choose_sites.hpp"

#include <fnmatch.h>

#include <algorithm>
#include <numeric>
#include <utility>

namespace fomoe::platforms {

namespace {

constexpr double kMostSearched = 20'000;

/// The costs of all pairs of sites in seconds: see sets_of_sites().
class Pairs {
 public:
  Pairs(const Platform& platform, double bytes) : sites_(platform.size()) {
    for (int i = 0; i < sites_; ++i) {
      for (int j = 0; j < sites_; ++j)
        seconds_.push_back(i == j ? 0
                                  : std::max(one_way(platform, i, j, bytes), one_way(platform, j, i, bytes)));
    }
  }
  [[nodiscard]] int sites() const { return sites_; }

  using Cost = std::pair<double, double>;  // slowest pair, sum over pairs
  [[nodiscard]] Cost badness(const std::vector<int>& set) const {
    Cost worst{0, 0};
    for (std::size_t a = 0; a < set.size(); ++a) {
      for (std::size_t b = 0; b < a; ++b) {
        const double pair_s = seconds_[static_cast<std::size_t>(set[a] * sites_ + set[b])];
        worst.first = std::max(worst.first, pair_s);
        worst.second += pair_s;
      }
    }
    return worst;
  }

 private:
  static double one_way(const Platform& platform, int from, int to, double bytes) {
    return platform.path(from, to).latency_s + bytes / platform.route_bytes_per_s(from, to);
  }
  int sites_;
  std::vector<double> seconds_;
};

double combinations(int sites, int count) {
  double product = 1;
  for (int i = 1; i <= count; ++i) product = product * (sites - count + i) / i;
  return product;
}

/// Calls visit with every set of `count` of the sites.
template <class Visit>
void each_set(int sites, int count, const Visit& visit) {
  std::vector<int> set(static_cast<std::size_t>(count));
  std::iota(set.begin(), set.end(), 0);
  while (true) {
    visit(std::as_const(set));
    int at = count - 1;
    while (at >= 0 && set[static_cast<std::size_t>(at)] == sites - count + at) --at;
    if (at < 0) return;
    ++set[static_cast<std::size_t>(at)];
    for (int next = at + 1; next < count; ++next)
      set[static_cast<std::size_t>(next)] = set[static_cast<std::size_t>(next - 1)] + 1;
  }
}

std::vector<int> best_of_all(const Pairs& pairs, int count) {
  std::vector<int> best;
  Pairs::Cost least{0, 0};
  each_set(pairs.sites(), count, [&](const std::vector<int>& set) {
    const Pairs::Cost badness = pairs.badness(set);
    if (best.empty() || badness < least) {
      best = set;
      least = badness;
    }
  });
  return best;
}

std::vector<int> best_without_one(const Pairs& pairs, const std::vector<int>& larger) {
  std::vector<int> best;
  for (const int left_out : larger) {
    std::vector<int> set;
    std::copy_if(larger.begin(), larger.end(), std::back_inserter(set), [&](int s) { return s != left_out; });
    if (best.empty() || pairs.badness(set) < pairs.badness(best)) best = set;
  }
  return best;
}

}  // namespace

bool UsedSites::has(const std::string& name, int index) const {
  if (names.empty()) return !first || index < *first;
  return std::any_of(names.begin(), names.end(), [&](const std::string& pattern) {
    return pattern == name || fnmatch(pattern.c_str(), name.c_str(), 0) == 0;
  });
}

Platform chosen_sites(const Platform& all, const std::vector<int>& sites) {
  Platform platform = all;
  platform.sites.clear();
  platform.paths = Paths(static_cast<int>(sites.size()), {});
  std::vector<int> place(all.sites.size(), -1);  // index among the chosen sites; -1 if not chosen
  for (std::size_t i = 0; i < sites.size(); ++i) {
    platform.sites.push_back(all.sites[static_cast<std::size_t>(sites[i])]);
    place[static_cast<std::size_t>(sites[i])] = static_cast<int>(i);
    for (std::size_t j = 0; j < sites.size(); ++j) {
      if (i == j) continue;
      platform.paths.set(static_cast<int>(i), static_cast<int>(j), all.path(sites[i], sites[j]));
    }
  }
  platform.changes.clear();
  for (LinkChange change : all.changes) {
    if (change.link != LinkChange::Link::shared) {
      change.from = place[static_cast<std::size_t>(change.from)];
      change.to = place[static_cast<std::size_t>(change.to)];
      if (change.from < 0 || change.to < 0) continue;
    }
    platform.changes.push_back(change);
  }
  return platform;
}

SiteSets sets_of_sites(const Platform& platform, int fewest, double bytes, std::size_t most_sets) {
  const int sites = platform.size();
  SiteSets found;
  double all_sets = 0;
  for (int count = fewest; count <= sites; ++count) all_sets += combinations(sites, count);
  found.all = all_sets <= static_cast<double>(most_sets);
  const Pairs pairs(platform, bytes);
  std::vector<int> larger(static_cast<std::size_t>(sites));
  std::iota(larger.begin(), larger.end(), 0);
  for (int count = sites; count >= fewest; --count) {
    if (found.all) {
      std::vector<std::vector<int>> of_size;
      each_set(sites, count, [&](const std::vector<int>& set) { of_size.push_back(set); });
      found.sets.insert(found.sets.begin(), of_size.begin(), of_size.end());
      continue;
    }
    if (count < sites) {
      const bool searched = combinations(sites, count) <= kMostSearched;
      found.exact = found.exact && searched;
      larger = searched ? best_of_all(pairs, count) : best_without_one(pairs, larger);
    }
    found.sets.insert(found.sets.begin(), larger);
  }
  return found;
}

}  // namespace fomoe::platforms
