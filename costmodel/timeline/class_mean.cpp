#include "costmodel/timeline/class_mean.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <utility>

#include "costmodel/math/spans.hpp"
#include "costmodel/timeline/own_pace_mean.hpp"

namespace fomoe::costmodel {

namespace {

std::vector<Span> clipped(std::vector<Span> spans, const Span& window) {
  for (auto& [a, b] : spans) {
    a = std::clamp(a, window.first, window.second);
    b = std::clamp(b, window.first, window.second);
  }
  return spans;
}

// Spans in which any node of a site computed, and in which any had a flow in flight.
struct SiteSpans {
  std::vector<Span> computing, transferring;

  [[nodiscard]] double compute_s() const { return covered(computing); }
  [[nodiscard]] double transferring_s() const { return covered(transferring); }
  // Seconds in which a flow is in flight and nothing is computed.
  [[nodiscard]] double exposed_s() const { return uncovered(transferring, computing); }
  [[nodiscard]] SiteSpans within(const Span& window) const {
    return {clipped(computing, window), clipped(transferring, window)};
  }
};

// Spans of each site in the rounds at the positions [first, last). A store is at no site.
std::vector<SiteSpans> spans_by_site(const Plan& plan, std::size_t sites, const Timeline& timeline,
                                     std::size_t first, std::size_t last) {
  std::vector<SiteSpans> spans(sites);
  const auto site_of = [&](std::int32_t node) -> SiteSpans& {
    return spans[static_cast<std::size_t>(plan.nodes[static_cast<std::size_t>(node)].site)];
  };
  const auto measured = [&](std::int32_t node, std::int64_t round) {
    return plan.nodes[static_cast<std::size_t>(node)].kind != NodeKind::store &&
           round >= static_cast<std::int64_t>(first) && round < static_cast<std::int64_t>(last);
  };
  for (const Interval& interval : timeline.intervals) {
    if (!measured(interval.node, interval.round) || interval.activity != Activity::compute) continue;
    site_of(interval.node).computing.push_back({interval.start_s, interval.end_s});
  }
  for (const FlowSpan& flow : timeline.flows) {
    if (!measured(flow.node, flow.round)) continue;
    site_of(flow.node).transferring.push_back({flow.start_s, flow.end_s});
  }
  return spans;
}

// Time at which each site's workers ended their last computation of the round at that position; 0 for sites
// without workers.
std::vector<double> workers_done_s(const Plan& plan, std::size_t sites, const Timeline& timeline,
                                   std::size_t position) {
  std::vector<double> done_s(sites, 0.0);
  for (const Interval& interval : timeline.intervals) {
    const Node& node = plan.nodes[static_cast<std::size_t>(interval.node)];
    if (interval.activity != Activity::compute || node.kind != NodeKind::worker) continue;
    if (interval.round != static_cast<std::int64_t>(position)) continue;
    double& site_s = done_s[static_cast<std::size_t>(node.site)];
    site_s = std::max(site_s, interval.end_s);
  }
  return done_s;
}

// Seconds in which transfers of a round were waiting or in flight at any node, by position. Rounds of
// different nodes may overlap in time; the transfers of each round are counted separately. A server or a
// store is always ready for the workers' payloads, so only the workers' waiting counts.
std::vector<double> communication_by_round(const Plan& plan, const Timeline& timeline) {
  std::map<std::pair<std::int64_t, std::int32_t>, Span> operations;  // (round, op) → span over all nodes
  for (const Interval& interval : timeline.intervals) {
    if (interval.activity != Activity::transfer) continue;
    if (plan.nodes[static_cast<std::size_t>(interval.node)].kind != NodeKind::worker) continue;
    auto [it, inserted] =
        operations.try_emplace({interval.round, interval.op}, interval.start_s, interval.end_s);
    if (!inserted)
      it->second = {std::min(it->second.first, interval.start_s),
                    std::max(it->second.second, interval.end_s)};
  }
  std::vector<std::vector<Span>> by_round(timeline.rounds.size());
  for (const auto& [key, span] : operations) by_round[static_cast<std::size_t>(key.first)].push_back(span);
  std::vector<double> seconds;
  for (const auto& spans : by_round) seconds.push_back(covered(spans));
  return seconds;
}

// Variance of the total duration of `missing` rounds that were not executed, estimated from a sample of n
// rounds. s² is the variance among the n rounds. The result has two parts: missing²·s²/n for the error of the
// sample mean, and missing·s² for the scatter of the missing rounds. Rounds are assumed to be independent.
double variance_of_missing(const std::vector<double>& sample_s, double missing) {
  const auto n = static_cast<double>(sample_s.size());
  if (n < 2) return 0;
  const double mean = std::accumulate(sample_s.begin(), sample_s.end(), 0.0) / n;
  double squares = 0;
  for (const double seconds : sample_s) squares += (seconds - mean) * (seconds - mean);
  const double variance = squares / (n - 1);
  return missing * missing * variance / n + missing * variance;
}

// The mean round of overlapping rounds, of which `missing` were not executed. The missing rounds are assumed
// to be in the steady state. The last two executed rounds are not in the steady state: the last round may be
// short, and its transfers share links with those of the round before. If rounds are identical, each missing
// round equals the last steady round. Otherwise it equals the mean of the steady rounds after the first
// quarter.
ClassMean means_of_overlapping(const Plan& plan, std::size_t sites, const RoundClass& round_class,
                               const Timeline& timeline, double missing) {
  const std::size_t executed = timeline.rounds.size(), last = executed - 3;
  const std::size_t first = round_class.identical ? last - 1 : executed / 4;
  const auto steady_rounds = static_cast<double>(last - first);
  std::vector<double> ends = timeline.round_end_s;
  std::sort(ends.begin(), ends.end());  // a fast site may end a round before a slow one ends an earlier round
  const std::vector<double> communication = communication_by_round(plan, timeline);
  const auto count = static_cast<double>(round_class.count);

  ClassMean means;
  means.total_s = ends.back() + missing * (ends[last] - ends[first]) / steady_rounds;
  if (!round_class.identical) {
    means.sampled_rounds = last - first;
    const std::vector<double> each = round_durations_s(ends);
    means.variance_s2 = variance_of_missing({each.begin() + static_cast<std::ptrdiff_t>(first) + 1,
                                             each.begin() + static_cast<std::ptrdiff_t>(last) + 1},
                                            missing);
  }
  for (std::size_t r = first + 1; r <= last; ++r)
    means.communication_s += missing / steady_rounds * communication[r] / count;
  for (const double seconds : communication) means.communication_s += seconds / count;
  // A site may be several rounds ahead of the slowest site. The steady spans of a site therefore lie between
  // the site's own ends of the rounds `first` and `last`.
  const std::vector<double> from_s = workers_done_s(plan, sites, timeline, first);
  const std::vector<double> to_s = workers_done_s(plan, sites, timeline, last);
  const std::vector<SiteSpans> spans = spans_by_site(plan, sites, timeline, 0, executed);
  for (std::size_t s = 0; s < sites; ++s) {
    const SiteSpans steady =
        spans[s].within(to_s[s] > 0 ? Span{from_s[s], to_s[s]} : Span{ends[first], ends[last]});
    const auto mean = [&](double all, double in_steady) {
      return (all + missing / steady_rounds * in_steady) / count;
    };
    means.compute_s.push_back(mean(spans[s].compute_s(), steady.compute_s()));
    means.exposed_s.push_back(mean(spans[s].exposed_s(), steady.exposed_s()));
    means.transferring_s +=
        mean(spans[s].transferring_s(), steady.transferring_s()) / static_cast<double>(sites);
  }
  return means;
}

// The mean round of rounds that do not overlap. If rounds are identical, the last executed round represents
// those that are missing, because it is in the steady state. If rounds are random, all executed rounds but
// the first do.
ClassMean means_of_separate(const Plan& plan, std::size_t sites, const RoundClass& round_class,
                            const Timeline& timeline, double missing) {
  const std::size_t executed = timeline.rounds.size();
  const bool sampled = missing > 0 && executed > 1;
  const bool only_last = round_class.identical && !round_class.overlapping && sampled;
  const std::size_t first = only_last ? executed - 1 : sampled ? 1 : 0;
  const auto window = static_cast<double>(executed - first);
  const std::vector<double>& ends = timeline.round_end_s;
  const std::vector<double> communication = communication_by_round(plan, timeline);
  const double end_s = end_of(timeline);
  const double mean_s = (end_s - (first == 0 ? 0.0 : ends[first - 1])) / window;
  const bool starts_run = timeline.rounds.front() == 0;

  ClassMean means;
  if (!round_class.identical && missing > 0) {
    std::vector<double> sample_s = round_durations_s(ends);
    sample_s.erase(sample_s.begin(), sample_s.begin() + static_cast<std::ptrdiff_t>(first));
    means.variance_s2 = variance_of_missing(sample_s, missing);
    means.sampled_rounds = sample_s.size();
  }
  means.total_s =
      sampled && !starts_run ? static_cast<double>(round_class.count) * mean_s : end_s + missing * mean_s;
  for (std::size_t r = first; r < executed; ++r) means.communication_s += communication[r] / window;
  for (const SiteSpans& site : spans_by_site(plan, sites, timeline, first, executed)) {
    means.compute_s.push_back(site.compute_s() / window);
    means.exposed_s.push_back(site.exposed_s() / window);
    means.transferring_s += site.transferring_s() / window / static_cast<double>(sites);
  }
  return means;
}

}  // namespace

std::vector<double> round_durations_s(const std::vector<double>& round_end_s) {
  std::vector<double> seconds;
  double before_s = 0;
  for (const double end_s : round_end_s) {
    // With a quorum, a late site may still be in a round when others have ended the next one.
    const double last_s = std::max(before_s, end_s);
    seconds.push_back(last_s - before_s);
    before_s = last_s;
  }
  return seconds;
}

ClassMean class_mean(const Plan& plan, std::size_t sites, const RoundClass& round_class,
                     const Timeline& timeline) {
  if (round_class.own_pace) return own_pace_mean(plan, sites, round_class, timeline);
  const std::size_t executed = timeline.rounds.size();
  const auto missing = static_cast<double>(round_class.count - static_cast<std::int64_t>(executed));
  ClassMean means;
  if (round_class.overlapping && missing > 0) {
    means = means_of_overlapping(plan, sites, round_class, timeline, missing);
  } else {
    means = means_of_separate(plan, sites, round_class, timeline, missing);
  }
  means.sent = timeline.sent;
  means.sent.divide_by(static_cast<double>(executed));
  return means;
}

ClassMean sample_mean(const Plan& plan, std::size_t sites, const RoundSample& sample) {
  const Timeline& timeline = sample.timeline;
  const auto measured = static_cast<double>(sample.last - sample.first);
  const std::vector<double>& ends = timeline.round_end_s;
  const auto end_s = [&](std::size_t positions) { return positions == 0 ? 0.0 : ends[positions - 1]; };
  ClassMean means;
  means.total_s = sample.count * (end_s(sample.last) - end_s(sample.first)) / measured;
  std::vector<double> batches_s;
  for (std::size_t at = sample.first; at + sample.batch <= sample.last; at += sample.batch)
    batches_s.push_back(end_s(at + sample.batch) - end_s(at));
  means.variance_s2 = variance_of_missing(batches_s, sample.count / static_cast<double>(sample.batch));
  means.sampled_rounds = batches_s.size();
  const std::vector<double> communication = communication_by_round(plan, timeline);
  for (std::size_t r = sample.first; r < sample.last; ++r)
    means.communication_s += communication[r] / measured;
  std::vector<SiteSpans> spans;
  if (sample.overlapping) {
    // A site may be ahead of the others, so its measured spans lie between its own ends of rounds.
    spans = spans_by_site(plan, sites, timeline, 0, timeline.rounds.size());
    const std::vector<double> from_s = sample.first == 0
                                           ? std::vector<double>(sites, 0.0)
                                           : workers_done_s(plan, sites, timeline, sample.first - 1);
    const std::vector<double> to_s = workers_done_s(plan, sites, timeline, sample.last - 1);
    for (std::size_t s = 0; s < sites; ++s)
      spans[s] = spans[s].within(to_s[s] > 0 ? Span{from_s[s], to_s[s]}
                                             : Span{end_s(sample.first), end_s(sample.last)});
  } else {
    spans = spans_by_site(plan, sites, timeline, sample.first, sample.last);
  }
  for (const SiteSpans& site : spans) {
    means.compute_s.push_back(site.compute_s() / measured);
    means.exposed_s.push_back(site.exposed_s() / measured);
    means.transferring_s += site.transferring_s() / measured / static_cast<double>(sites);
  }
  means.sent = timeline.sent;
  means.sent.divide_by(static_cast<double>(timeline.rounds.size()));
  return means;
}

}  // namespace fomoe::costmodel
