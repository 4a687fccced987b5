#include "trainer/data/deal.hpp"

#include <algorithm>
#include <numeric>

namespace fomoe::trainer {

std::vector<std::int64_t> deal_evenly(const std::vector<std::int64_t>& limits, std::int64_t wanted) {
  std::vector<std::int64_t> taken(limits.size());
  for (bool any = true; any && wanted > 0;) {
    any = false;
    for (std::size_t i = 0; i < limits.size() && wanted > 0; ++i) {
      if (taken[i] == limits[i]) continue;
      ++taken[i];
      --wanted;
      any = true;
    }
  }
  return taken;
}

std::vector<std::size_t> deal_by_size(const std::vector<std::int64_t>& sizes, std::size_t sites) {
  std::vector<std::size_t> order(sizes.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return sizes[a] > sizes[b]; });
  std::vector<std::size_t> site_of(sizes.size());
  std::vector<std::int64_t> total(sites);
  for (const std::size_t item : order) {
    const auto least = std::min_element(total.begin(), total.end());
    *least += sizes[item];
    site_of[item] = static_cast<std::size_t>(least - total.begin());
  }
  return site_of;
}

}  // namespace fomoe::trainer
