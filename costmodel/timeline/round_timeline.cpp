#include "costmodel/timeline/round_timeline.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <tuple>

namespace fomoe::costmodel {

namespace {

constexpr std::int32_t kMostNodes = 16;
constexpr double kResolution = 250;  // resolvable parts of a round in a drawing

/// Cuts the span to [0, duration]; the result is empty if it lies outside.
RoundSpan cut(RoundSpan span, double begin_s, double duration_s) {
  span.start_s = std::max(0.0, span.start_s - begin_s);
  span.end_s = std::min(duration_s, span.end_s - begin_s);
  return span;
}

void add_name(std::string& names, const std::string& name) {
  if (names.empty()) {
    names = name;
  } else if (names != name && !names.ends_with(" and others")) {
    names += " and others";
  }
}

}  // namespace

RoundTimeline round_timeline(const Plan& plan, const Timeline& timeline) {
  RoundTimeline shown;
  if (timeline.rounds.empty()) return shown;
  // Without synchronisation a fast site's round may end before an earlier round of a slow site. The time of a
  // round is that since the end before its own.
  const std::vector<double>& ends = timeline.round_end_s;
  std::vector<std::size_t> by_end(ends.size());
  std::iota(by_end.begin(), by_end.end(), std::size_t{0});
  std::stable_sort(by_end.begin(), by_end.end(),
                   [&](std::size_t a, std::size_t b) { return ends[a] < ends[b]; });
  const std::size_t middle = by_end.size() / 2;
  const double begin_s = middle == 0 ? 0 : ends[by_end[middle - 1]];
  shown.round = timeline.rounds[by_end[middle]];
  shown.duration_s = ends[by_end[middle]] - begin_s;
  shown.resolution_s = shown.duration_s / kResolution;
  const auto nodes = static_cast<std::int32_t>(plan.nodes.size());
  shown.left_out_nodes = std::max(0, nodes - kMostNodes);

  std::vector<RoundSpan> spans;
  const auto add = [&](RoundSpan span) {
    span = cut(std::move(span), begin_s, shown.duration_s);
    if (span.end_s > span.start_s && span.node < kMostNodes) spans.push_back(std::move(span));
  };
  std::map<std::int64_t, RoundPlan> rounds;
  for (const Interval& interval : timeline.intervals) {
    if (interval.node >= kMostNodes || interval.end_s <= begin_s ||
        interval.start_s >= begin_s + shown.duration_s)
      continue;
    if (interval.activity == Activity::upkeep) {
      add({interval.node, SpanKind::upkeep, kUpkeepName, interval.start_s, interval.end_s});
      continue;
    }
    const std::int64_t index = timeline.rounds[static_cast<std::size_t>(interval.round)];
    if (!rounds.contains(index)) rounds[index] = plan.round(index);
    add({interval.node, interval.activity == Activity::compute ? SpanKind::compute : SpanKind::transfer,
         rounds[index].ops[static_cast<std::size_t>(interval.op)].name, interval.start_s, interval.end_s});
  }
  for (const FlowSpan& flow : timeline.flows)
    add({flow.node, SpanKind::under_way, "", flow.start_s, flow.end_s});

  std::stable_sort(spans.begin(), spans.end(), [](const RoundSpan& a, const RoundSpan& b) {
    return std::tie(a.node, a.kind, a.start_s) < std::tie(b.node, b.kind, b.start_s);
  });
  for (RoundSpan& span : spans) {
    const bool near = !shown.spans.empty() && shown.spans.back().node == span.node &&
                      shown.spans.back().kind == span.kind &&
                      span.start_s - shown.spans.back().end_s < shown.resolution_s;
    // Merges spans without a visible gap between them, unless both are long enough to be visible and have
    // different names.
    const bool own = near && shown.spans.back().what != span.what &&
                     std::min(span.end_s - span.start_s,
                              shown.spans.back().end_s - shown.spans.back().start_s) > shown.resolution_s;
    if (!near || own) {
      shown.spans.push_back(std::move(span));
      continue;
    }
    add_name(shown.spans.back().what, span.what);
    shown.spans.back().end_s = std::max(shown.spans.back().end_s, span.end_s);
  }
  return shown;
}

}  // namespace fomoe::costmodel
