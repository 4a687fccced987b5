// Routing statistics: how often the tokens of each site chose each expert.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace fomoe::costmodel {

struct RoutingCounts {
  int layers = 0, experts = 0, sites = 0;
  std::vector<std::int64_t> counts;  // [layer][expert][site], ≥ 0
  std::string source;                // origin of the counts, for reports

  [[nodiscard]] bool empty() const { return counts.empty(); }
  [[nodiscard]] std::int64_t at(int layer, int expert, int site) const {
    return counts[index(layer, expert, site)];
  }
  std::int64_t& at(int layer, int expert, int site) { return counts[index(layer, expert, site)]; }

 private:
  [[nodiscard]] std::size_t index(int layer, int expert, int site) const {
    return (static_cast<std::size_t>(layer) * static_cast<std::size_t>(experts) +
            static_cast<std::size_t>(expert)) *
               static_cast<std::size_t>(sites) +
           static_cast<std::size_t>(site);
  }
};

/// Routing counts of the given size, all zero.
inline RoutingCounts make_routing_counts(int layers, int experts, int sites) {
  RoutingCounts counts{layers, experts, sites, {}, {}};
  counts.counts.assign(
      static_cast<std::size_t>(layers) * static_cast<std::size_t>(experts) * static_cast<std::size_t>(sites),
      0);
  return counts;
}

}  // namespace fomoe::costmodel
