#include "trainer/record/interval_summary.hpp"

#include <algorithm>
#include <limits>
#include <map>

#include "costmodel/timeline/seen_flows.hpp"

namespace fomoe::trainer {

using costmodel::Activity;
using costmodel::FlowSpan;
using costmodel::Interval;
using costmodel::Span;
using costmodel::Timeline;

namespace {

/// Divides spans at a time: returns the parts before it, and keeps those after it.
std::vector<Span> taken_until(double until_s, std::vector<Span>& spans) {
  std::vector<Span> before, after;
  for (const auto& [begin, end] : spans) {
    if (begin < until_s) before.emplace_back(begin, std::min(end, until_s));
    if (end > until_s) after.emplace_back(std::max(begin, until_s), end);
  }
  spans = std::move(after);
  return before;
}

}  // namespace

IntervalSummary::IntervalSummary(const costmodel::Plan& plan, std::int64_t first_round)
    : plan_(plan),
      first_round_(first_round),
      round_end_s_(static_cast<std::size_t>(plan.rounds - first_round), 0),
      upkeep_delay_(plan.nodes.size()) {
  for (std::size_t n = 0; n < plan.nodes.size(); ++n) {
    const auto site = static_cast<std::size_t>(plan.nodes[n].site);
    if (site >= sites_.size()) sites_.resize(site + 1);
    sites_[site].node = static_cast<costmodel::NodeId>(n);
  }
}

const costmodel::Node& IntervalSummary::node_of(const Interval& interval) const {
  return plan_.nodes[static_cast<std::size_t>(interval.node)];
}

void IntervalSummary::add(const std::vector<Interval>& intervals) {
  for (Interval interval : intervals) {
    interval.round -= first_round_;
    double& end_s = round_end_s_.at(static_cast<std::size_t>(interval.round));
    end_s = std::max(end_s, interval.end_s);
    pending_.push_back(interval);
  }
}

void IntervalSummary::fold(std::int64_t round) {
  folded_ = std::max(folded_, round - first_round_);
  const auto first_old = std::stable_partition(
      pending_.begin(), pending_.end(), [&](const Interval& interval) { return interval.round >= folded_; });
  const std::vector<Interval> old(first_old, pending_.end());
  pending_.erase(first_old, pending_.end());
  const auto middle = static_cast<std::int64_t>(round_end_s_.size() / 2);
  std::copy_if(old.begin(), old.end(), std::back_inserter(near_middle_),
               [&](const Interval& interval) { return std::abs(interval.round - middle) < kKeptRounds; });
  fold_sites(old);
  fold_communication(old);
  upkeep_delay_.add(old);
}

double IntervalSummary::upkeep_delay_s() const {
  costmodel::UpkeepDelay whole = upkeep_delay_;
  whole.add(pending_);
  return whole.seconds();
}

// A node computes one operation after another, and starts what belongs to later rounds after the computations
// of this one. So a site's sums are complete until its last computation of the rounds that are reduced. A
// site that only passes data on has none; its later intervals say until when its sums are complete.
void IntervalSummary::fold_sites(const std::vector<Interval>& old) {
  std::vector<std::vector<Span>> computing(sites_.size());
  std::vector<double> until_s(sites_.size(), -1);
  for (const Interval& interval : old) {
    if (interval.activity != Activity::compute) continue;
    const auto site = static_cast<std::size_t>(node_of(interval).site);
    computing[site].emplace_back(interval.start_s, interval.end_s);
    until_s[site] = std::max(until_s[site], interval.end_s);
  }
  std::vector<double> later_s(sites_.size(), std::numeric_limits<double>::infinity());
  for (const Interval& interval : pending_) {
    if (interval.activity == Activity::upkeep) continue;
    double& first_s = later_s[static_cast<std::size_t>(node_of(interval).site)];
    first_s = std::min(first_s, interval.start_s);
  }
  for (const FlowSpan& flow : costmodel::seen_flows(old)) {
    const int site = plan_.nodes[static_cast<std::size_t>(flow.node)].site;
    sites_[static_cast<std::size_t>(site)].transferring.emplace_back(flow.start_s, flow.end_s);
  }
  for (std::size_t s = 0; s < sites_.size(); ++s) {
    OfSite& site = sites_[s];
    if (until_s[s] < 0) until_s[s] = later_s[s];
    if (!(until_s[s] > site.until_s) || until_s[s] == std::numeric_limits<double>::infinity()) continue;
    site.until_s = until_s[s];
    const std::vector<Span> flows = taken_until(site.until_s, site.transferring);
    site.compute_s += costmodel::covered(computing[s]);
    site.transferring_s += costmodel::covered(flows);
    site.exposed_s += costmodel::uncovered(flows, computing[s]);
  }
}

// Seconds in which transfers of a round were waiting or in flight at any worker, as class_mean.cpp defines
// them.
void IntervalSummary::fold_communication(const std::vector<Interval>& old) {
  std::map<std::pair<std::int64_t, std::int32_t>, Span> operations;
  for (const Interval& interval : old) {
    if (interval.activity != Activity::transfer) continue;
    if (node_of(interval).kind == costmodel::NodeKind::server) continue;
    const auto [at, added] =
        operations.try_emplace({interval.round, interval.op}, interval.start_s, interval.end_s);
    if (!added)
      at->second = {std::min(at->second.first, interval.start_s),
                    std::max(at->second.second, interval.end_s)};
  }
  std::map<std::int64_t, std::vector<Span>> by_round;
  for (const auto& [key, span] : operations) by_round[key.first].push_back(span);
  for (const auto& [round, spans] : by_round) communication_s_ += costmodel::covered(spans);
}

Timeline IntervalSummary::frame() const {
  Timeline timeline;
  timeline.round_end_s = round_end_s_;
  timeline.op_names.resize(round_end_s_.size());
  for (std::size_t r = 0; r < round_end_s_.size(); ++r) {
    timeline.rounds.push_back(first_round_ + static_cast<std::int64_t>(r));
    // A round in which no node had a part ends when the round before ends.
    if (r > 0) timeline.round_end_s[r] = std::max(timeline.round_end_s[r], timeline.round_end_s[r - 1]);
  }
  return timeline;
}

// In the time [0, T) a site computed for C seconds, and X seconds of flows were exposed and Y hidden. The
// spans are [0, C) and [C − Y, C + X): disjoint parts of the time are not longer than the time together.
void IntervalSummary::add_sums(Timeline& timeline) const {
  for (const OfSite& site : sites_) {
    if (site.until_s == 0 && site.transferring.empty()) continue;
    timeline.intervals.push_back({site.node, 0, 0, Activity::compute, 0, site.compute_s});
    const double hidden_s = site.transferring_s - site.exposed_s;
    timeline.flows.push_back({site.node, 0, site.compute_s - hidden_s, site.compute_s + site.exposed_s});
    for (const auto& [begin, end] : site.transferring) timeline.flows.push_back({site.node, 0, begin, end});
  }
  // Only its length counts. Before the start of the run it is in nobody's way.
  for (std::size_t n = 0; n < plan_.nodes.size(); ++n) {
    if (plan_.nodes[n].kind != costmodel::NodeKind::worker) continue;
    timeline.intervals.push_back(
        {static_cast<std::int32_t>(n), 0, 0, Activity::transfer, -communication_s_, 0});
    break;
  }
}

Timeline IntervalSummary::timeline() const {
  Timeline timeline = frame();
  // Rounds with names are those whose intervals are all there, whatever was reduced before.
  const auto kept = static_cast<std::size_t>(kKeptRounds), rounds = timeline.rounds.size();
  const std::size_t last = rounds > kept ? rounds - kept : 0;
  for (std::size_t r = std::max(static_cast<std::size_t>(folded_), last); r < rounds; ++r) {
    for (const costmodel::Op& op : plan_.round(timeline.rounds[r]).ops)
      timeline.op_names[r].push_back(op.name);
  }
  timeline.intervals = pending_;
  timeline.flows = costmodel::seen_flows(pending_);
  if (folded_ > 0) add_sums(timeline);
  return timeline;
}

Timeline IntervalSummary::around_middle() const {
  Timeline timeline = frame();
  timeline.intervals = near_middle_;
  timeline.intervals.insert(timeline.intervals.end(), pending_.begin(), pending_.end());
  timeline.flows = costmodel::seen_flows(timeline.intervals);
  return timeline;
}

std::size_t IntervalSummary::kept() const {
  std::size_t spans = pending_.size() + near_middle_.size();
  for (const OfSite& site : sites_) spans += site.transferring.size();
  return spans;
}

}  // namespace fomoe::trainer
