#include "costmodel/timeline/critical_path.hpp"

#include <algorithm>
#include <map>
#include <set>

namespace fomoe::costmodel {

namespace {

class Walk {
 public:
  Walk(const Plan& plan, const Timeline& timeline) : timeline_(timeline), of_node_(plan.nodes.size()) {
    for (const Interval& interval : timeline.intervals) {
      of_node_[static_cast<std::size_t>(interval.node)].push_back(&interval);
      if (interval.activity != Activity::transfer) continue;
      const Interval*& joined = last_joined_[{interval.round, interval.op}];
      if (joined == nullptr || interval.start_s > joined->start_s) joined = &interval;
    }
    for (auto& intervals : of_node_) {
      std::sort(intervals.begin(), intervals.end(),
                [](const Interval* a, const Interval* b) { return a->end_s < b->end_s; });
    }
  }

  [[nodiscard]] const Interval* last_of_round(std::size_t position) const {
    const Interval* last = nullptr;
    for (const Interval& interval : timeline_.intervals) {
      // A node that the round left out may compute until after the round's end.
      if (interval.round != static_cast<std::int64_t>(position) ||
          interval.end_s > timeline_.round_end_s[position])
        continue;
      if (last == nullptr || interval.end_s > last->end_s) last = &interval;
    }
    return last;
  }

  /// The interval that determines when `interval` could begin. For a transfer, this is the interval of the
  /// last node that joined the transfer, if that node joined before `interval` ended. Times that differ by
  /// less than the resolution are the same.
  [[nodiscard]] const Interval* beginning(const Interval* interval) const {
    if (interval->activity != Activity::transfer) return interval;
    const Interval* joined = last_joined_.at({interval->round, interval->op});
    return joined->start_s < interval->end_s - resolution_s(interval->end_s) ? joined : interval;
  }

  /// The latest interval of nonzero length on the same node that ended when `interval` began, or earlier.
  [[nodiscard]] const Interval* before(const Interval* interval) const {
    const auto& intervals = of_node_[static_cast<std::size_t>(interval->node)];
    const double tolerance_s = resolution_s(interval->end_s);
    auto after = std::upper_bound(intervals.begin(), intervals.end(), interval->start_s + tolerance_s,
                                  [](double time_s, const Interval* other) { return time_s < other->end_s; });
    while (after != intervals.begin()) {
      const Interval* found = *--after;
      if (found != interval && found->start_s < interval->start_s) return found;
    }
    return nullptr;
  }

  [[nodiscard]] const std::string& name_of(const Interval* interval) const {
    static const std::string kUpkeep = kUpkeepName;
    if (interval->activity == Activity::upkeep) return kUpkeep;
    return timeline_
        .op_names[static_cast<std::size_t>(interval->round)][static_cast<std::size_t>(interval->op)];
  }

 private:
  static double resolution_s(double time_s) { return 1e-9 * (time_s + 1e-9); }

  const Timeline& timeline_;
  // By node, in the order of their ends.
  std::vector<std::vector<const Interval*>> of_node_;
  // (round, op) → interval of the node that joined last.
  std::map<std::pair<std::int64_t, std::int32_t>, const Interval*> last_joined_;
};

}  // namespace

std::vector<CriticalStep> critical_path(const Plan& plan, const std::vector<SiteReport>& sites,
                                        const Timeline& timeline, std::size_t position) {
  static const std::string kStore = "store";
  const Walk walk(plan, timeline);
  // The last end of a round before its own, which need not be that of the round before it (end_of()).
  double begin_s = 0;
  for (const double end_s : timeline.round_end_s) {
    if (end_s < timeline.round_end_s[position]) begin_s = std::max(begin_s, end_s);
  }
  std::vector<CriticalStep> steps;
  // Operations without duration may lead back to each other: the path has each interval once.
  std::set<const Interval*> seen;
  for (const Interval* at = walk.last_of_round(position);
       at != nullptr && at->end_s > begin_s && seen.insert(at).second;) {
    const Interval* from = walk.beginning(at);
    const Node& node = plan.nodes[static_cast<std::size_t>(from->node)];
    const std::string& place =
        node.kind == NodeKind::store ? kStore : sites[static_cast<std::size_t>(node.site)].name;
    const double seconds = at->end_s - std::max(begin_s, from->start_s);
    const std::string& name = walk.name_of(at);
    if (!steps.empty() && steps.back().what == name && steps.back().site == place) {
      steps.back().seconds += seconds;
    } else if (seconds > 0) {
      steps.push_back({name, place, at->activity, seconds});
    }
    at = walk.before(from);
  }
  std::reverse(steps.begin(), steps.end());
  return steps;
}

}  // namespace fomoe::costmodel
