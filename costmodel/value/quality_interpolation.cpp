#include "costmodel/value/quality_interpolation.hpp"

#include <algorithm>
#include <cmath>
#include <set>

namespace fomoe::costmodel {

namespace {

/// The two known values around `wanted`, which are the same if it is known itself; and its place between
/// them.
struct Neighbours {
  std::int64_t low = 0, high = 0;
};
std::optional<Neighbours> between(const std::set<std::int64_t>& known, double wanted) {
  const auto above = std::find_if(known.begin(), known.end(),
                                  [&](std::int64_t value) { return static_cast<double>(value) >= wanted; });
  if (above == known.end()) return std::nullopt;
  if (static_cast<double>(*above) == wanted) return Neighbours{*above, *above};
  if (above == known.begin()) return std::nullopt;
  return Neighbours{*std::prev(above), *above};
}

}  // namespace

std::optional<Interpolated> interpolated(const std::vector<const QualityRow*>& rows, double local_steps,
                                         double expert_overlap) {
  std::set<std::int64_t> steps, overlaps;
  for (const QualityRow* row : rows) {
    steps.insert(row->local_steps);
    overlaps.insert(row->expert_overlap);
  }
  const std::optional<Neighbours> k = between(steps, local_steps), o = between(overlaps, expert_overlap);
  if (!k || !o) return std::nullopt;
  const double k_share = k->low == k->high
                             ? 0
                             : std::log(local_steps / static_cast<double>(k->low)) /
                                   std::log(static_cast<double>(k->high) / static_cast<double>(k->low));
  const double o_share = o->low == o->high ? 0
                                           : (expert_overlap - static_cast<double>(o->low)) /
                                                 static_cast<double>(o->high - o->low);
  Interpolated result;
  double loss = 0;
  for (const bool upper_k : {false, true}) {
    if (upper_k && k->low == k->high) continue;
    for (const bool upper_o : {false, true}) {
      if (upper_o && o->low == o->high) continue;
      const auto found = std::find_if(rows.begin(), rows.end(), [&](const QualityRow* row) {
        return row->local_steps == (upper_k ? k->high : k->low) &&
               row->expert_overlap == (upper_o ? o->high : o->low);
      });
      if (found == rows.end()) return std::nullopt;
      const double weight = (upper_k ? k_share : 1 - k_share) * (upper_o ? o_share : 1 - o_share);
      loss += weight * std::log((*found)->perplexity);
      result.plus_minus = std::max(result.plus_minus, (*found)->plus_minus);
      result.neighbours.push_back(*found);
    }
  }
  result.perplexity = std::exp(loss);
  const auto [low, high] = std::minmax_element(
      result.neighbours.begin(), result.neighbours.end(),
      [](const QualityRow* a, const QualityRow* b) { return a->perplexity < b->perplexity; });
  result.lowest = (*low)->perplexity;
  result.highest = (*high)->perplexity;
  return result;
}

}  // namespace fomoe::costmodel
