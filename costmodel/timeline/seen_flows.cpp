#include "costmodel/timeline/seen_flows.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <utility>

namespace fomoe::costmodel {

std::vector<FlowSpan> seen_flows(const std::vector<Interval>& intervals) {
  std::map<std::pair<std::int64_t, std::int32_t>, std::vector<const Interval*>> transfers;
  for (const Interval& interval : intervals) {
    if (interval.activity == Activity::transfer)
      transfers[{interval.round, interval.op}].push_back(&interval);
  }
  std::vector<FlowSpan> spans;
  for (const auto& [key, parts] : transfers) {
    for (const Interval* part : parts) {
      double partner_s = std::numeric_limits<double>::infinity();
      for (const Interval* other : parts) {
        if (other != part) partner_s = std::min(partner_s, other->start_s);
      }
      const double start_s = std::max(part->start_s, partner_s);
      if (start_s < part->end_s) spans.push_back({part->node, part->round, start_s, part->end_s});
    }
  }
  return spans;
}

}  // namespace fomoe::costmodel
