#include "costmodel/timeline/upkeep_delay.hpp"

#include <algorithm>
#include <cstdint>
#include <map>
#include <tuple>
#include <utility>

namespace fomoe::costmodel {

namespace {

/// In the order in which they happen if they have the same time.
enum class Moment { transfer_ends, upkeep_ends, transfer_starts };

struct Event {
  double at_s = 0;
  Moment moment = Moment::upkeep_ends;
  const Interval* of = nullptr;
};

std::vector<Event> events_of(const std::vector<Interval>& intervals) {
  std::vector<Event> events;
  for (const Interval& interval : intervals) {
    if (interval.activity == Activity::upkeep)
      events.push_back({interval.end_s, Moment::upkeep_ends, &interval});
    if (interval.activity != Activity::transfer) continue;
    events.push_back({interval.start_s, Moment::transfer_starts, &interval});
    events.push_back({interval.end_s, Moment::transfer_ends, &interval});
  }
  std::stable_sort(events.begin(), events.end(), [](const Event& a, const Event& b) {
    return std::tie(a.at_s, a.moment) < std::tie(b.at_s, b.moment);
  });
  return events;
}

/// When the last node joined a transfer, and when it would have without upkeep.
struct Joined {
  double seen_s = 0, without_s = 0;
};

/// The computations of each node, in the order of time.
class Computations {
 public:
  Computations(const std::vector<Interval>& intervals, std::size_t nodes) : of_node_(nodes) {
    for (const Interval& interval : intervals)
      if (interval.activity == Activity::compute)
        of_node_[static_cast<std::size_t>(interval.node)].push_back(&interval);
    for (auto& of_node : of_node_)
      std::sort(of_node.begin(), of_node.end(),
                [](const Interval* a, const Interval* b) { return a->start_s < b->start_s; });
  }
  /// Whether the node computes before and after this time.
  [[nodiscard]] bool under_way(std::int32_t node, double at_s) const {
    const auto& of_node = of_node_[static_cast<std::size_t>(node)];
    const auto next = std::partition_point(of_node.begin(), of_node.end(),
                                           [&](const Interval* other) { return other->end_s <= at_s; });
    return next != of_node.end() && (*next)->start_s < at_s;
  }

 private:
  std::vector<std::vector<const Interval*>> of_node_;
};

}  // namespace

void UpkeepDelay::add(const std::vector<Interval>& complete) {
  const Computations computations(complete, earlier_s_.size());
  std::map<std::pair<std::int64_t, std::int32_t>, Joined> transfers;
  for (const auto& [at_s, moment, of] : events_of(complete)) {
    double& earlier_s = earlier_s_[static_cast<std::size_t>(of->node)];
    if (moment == Moment::upkeep_ends) {
      earlier_s += of->end_s - of->start_s;
      continue;
    }
    Joined& joined = transfers[{of->round, of->op}];
    if (moment == Moment::transfer_starts) {
      joined.seen_s = std::max(joined.seen_s, of->start_s);
      joined.without_s = std::max(joined.without_s, of->start_s - earlier_s);
    } else if (!computations.under_way(of->node, at_s)) {
      earlier_s = joined.seen_s - joined.without_s;
    }
  }
  for (const Interval& interval : complete) {
    if (interval.end_s < end_s_) continue;
    end_s_ = interval.end_s;
    delay_s_ = earlier_s_[static_cast<std::size_t>(interval.node)];
  }
}

}  // namespace fomoe::costmodel
