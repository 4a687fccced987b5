#include "costmodel/report_assembly.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <utility>

#include "costmodel/closed_form.hpp"
#include "costmodel/cost.hpp"
#include "costmodel/critical_path.hpp"
#include "costmodel/goodput.hpp"
#include "costmodel/memory.hpp"
#include "costmodel/methods/method.hpp"
#include "costmodel/quality.hpp"
#include "costmodel/replicas.hpp"

namespace fomoe::costmodel {

namespace {

using Span = std::pair<double, double>;

// Total length of the union of spans.
double covered(std::vector<Span> spans) {
  std::sort(spans.begin(), spans.end());
  double total = 0, end = -std::numeric_limits<double>::infinity();
  for (const auto& [a, b] : spans) {
    if (b <= end) continue;
    total += b - std::max(a, end);
    end = b;
  }
  return total;
}

std::vector<Span> clipped(std::vector<Span> spans, const Span& window) {
  for (auto& [a, b] : spans) {
    a = std::clamp(a, window.first, window.second);
    b = std::clamp(b, window.first, window.second);
  }
  return spans;
}

// When any node of a site computed, and when any had a flow under way.
struct SiteSpans {
  std::vector<Span> computing, transferring;

  [[nodiscard]] double compute_s() const { return covered(computing); }
  [[nodiscard]] double transferring_s() const { return covered(transferring); }
  // A flow is under way and nothing is computed.
  [[nodiscard]] double exposed_s() const {
    std::vector<Span> both = computing;
    both.insert(both.end(), transferring.begin(), transferring.end());
    return covered(both) - covered(computing);
  }
  [[nodiscard]] SiteSpans within(const Span& window) const {
    return {clipped(computing, window), clipped(transferring, window)};
  }
};

// Of rounds from position `first` on.
std::vector<SiteSpans> spans_by_site(const Plan& plan, std::size_t sites, const Timeline& timeline,
                                     std::size_t first) {
  std::vector<SiteSpans> spans(sites);
  const auto site_of = [&](std::int32_t node) -> SiteSpans& {
    return spans[static_cast<std::size_t>(plan.nodes[static_cast<std::size_t>(node)].site)];
  };
  for (const Interval& interval : timeline.intervals) {
    if (interval.round < static_cast<std::int64_t>(first) || interval.activity != Activity::compute) continue;
    site_of(interval.node).computing.push_back({interval.start_s, interval.end_s});
  }
  for (const FlowSpan& flow : timeline.flows) {
    if (flow.round < static_cast<std::int64_t>(first)) continue;
    site_of(flow.node).transferring.push_back({flow.start_s, flow.end_s});
  }
  return spans;
}

// How long transfers of a round were wanted or under way at any node, by position. Rounds of different nodes
// may overlap in time; each round's transfers count for themselves. A server is ready for the workers'
// payloads all the time; it is they who want a transfer.
std::vector<double> communication_by_round(const Plan& plan, const Timeline& timeline) {
  std::map<std::pair<std::int64_t, std::int32_t>, Span> operations;  // (round, op) → hull over nodes
  for (const Interval& interval : timeline.intervals) {
    if (interval.activity != Activity::transfer) continue;
    if (plan.nodes[static_cast<std::size_t>(interval.node)].kind == NodeKind::server) continue;
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

// The mean round of one class, and how long all its rounds take together.
struct ClassMeans {
  double total_s = 0;
  double communication_s = 0;
  double variance_s2 = 0;                    // of total_s, where rounds are a sample
  double transferring_s = 0;                 // mean over sites
  std::vector<double> compute_s, exposed_s;  // by site
  PairBytes sent;                            // by node, per round
};

// Of `count` rounds of which the first ones were executed, those not executed like the mean of these: with s²
// the variance among n samples, (N − n)²·s²/n for the mean's own error, (N − n)·s² for the others' scatter.
double variance_of_total(const std::vector<double>& ends, std::int64_t count) {
  const auto n = static_cast<double>(ends.size());
  const double mean = ends.back() / n;
  double squares = 0, before = 0;
  for (const double end : ends) {
    squares += (end - before - mean) * (end - before - mean);
    before = end;
  }
  const double missing = static_cast<double>(count) - n;
  const double variance = squares / (n - 1);
  return missing * missing * variance / n + missing * variance;
}

ClassMeans means_of(const Plan& plan, std::size_t sites, const RoundClass& rounds, const Timeline& timeline) {
  const std::size_t executed = timeline.rounds.size();
  const auto missing = static_cast<double>(rounds.count - static_cast<std::int64_t>(executed));
  // Identical rounds: only the last one counts, the state is steady there. Random rounds: all are samples.
  // Overlapping rounds: all count, and the missing ones are like the steady state before the last two, of
  // which the one may be short and the other's transfers share links with it.
  const bool only_last = rounds.identical && !rounds.overlapping && missing > 0;
  const std::size_t first = only_last ? executed - 1 : 0;
  const std::vector<double>& ends = timeline.round_end_s;
  const std::vector<double> communication = communication_by_round(plan, timeline);
  const std::vector<SiteSpans> spans = spans_by_site(plan, sites, timeline, first);

  ClassMeans means;
  means.sent = timeline.sent;
  for (double& bytes : means.sent.bytes) bytes /= static_cast<double>(executed);
  if (rounds.overlapping && missing > 0) {
    const Span steady = {ends[executed - 4], ends[executed - 3]};
    const auto count = static_cast<double>(rounds.count);
    means.total_s = ends.back() + missing * (steady.second - steady.first);
    means.communication_s = missing * communication[executed - 3] / count;
    for (const double seconds : communication) means.communication_s += seconds / count;
    for (const SiteSpans& site : spans) {
      const SiteSpans in_steady = site.within(steady);
      means.compute_s.push_back((site.compute_s() + missing * in_steady.compute_s()) / count);
      means.exposed_s.push_back((site.exposed_s() + missing * in_steady.exposed_s()) / count);
      means.transferring_s +=
          (site.transferring_s() + missing * in_steady.transferring_s()) / count / static_cast<double>(sites);
    }
    return means;
  }
  if (!rounds.identical && missing > 0 && executed > 1)
    means.variance_s2 = variance_of_total(ends, rounds.count);
  const auto window = static_cast<double>(executed - first);
  means.total_s = ends.back() + missing * (ends.back() - (first == 0 ? 0.0 : ends[first - 1])) / window;
  for (std::size_t r = first; r < executed; ++r) means.communication_s += communication[r] / window;
  for (const SiteSpans& site : spans) {
    means.compute_s.push_back(site.compute_s() / window);
    means.exposed_s.push_back(site.exposed_s() / window);
    means.transferring_s += site.transferring_s() / window / static_cast<double>(sites);
  }
  return means;
}

void find_busiest_link(RunReport& report, const platforms::Platform& platform, const PairBytes& per_round) {
  double busiest_s = 0;
  const auto consider = [&](const std::string& name, double bytes, double bytes_per_s) {
    if (bytes / bytes_per_s <= busiest_s) return;
    busiest_s = bytes / bytes_per_s;
    report.bottleneck.link = name;
  };
  for (int i = 0; i < platform.size(); ++i) {
    const platforms::Site& site = platform.sites[static_cast<std::size_t>(i)];
    double sent = 0, received = 0;
    for (int j = 0; j < platform.size(); ++j) {
      sent += per_round.at(i, j);
      received += per_round.at(j, i);
    }
    consider("uplink of " + site.name, sent, site.uplink_bytes_per_s);
    consider("downlink of " + site.name, received, site.downlink_bytes_per_s);
  }
  for (std::size_t k = 0; k < platform.backbones.size(); ++k) {
    double carried = 0;
    for (int i = 0; i < platform.size(); ++i) {
      for (int j = 0; j < platform.size(); ++j) {
        if (i != j && platform.path(i, j).backbone == static_cast<int>(k)) carried += per_round.at(i, j);
      }
    }
    const int index = static_cast<int>(k);
    consider(platforms::link_name(platform, platforms::LinkChange::Link::backbone, index, index), carried,
             platform.backbones[k].bandwidth_bytes_per_s);
  }
  for (int i = 0; i < platform.size(); ++i) {
    for (int j = 0; j < platform.size(); ++j) {
      // A path beside an equally slow port says more: it names both ends.
      const double busy_s = per_round.at(i, j) / platform.path(i, j).bandwidth_bytes_per_s;
      if (busy_s > 0 && busy_s >= busiest_s) {
        busiest_s = busy_s;
        report.bottleneck.link = "path " + platform.sites[static_cast<std::size_t>(i)].name + " to " +
                                 platform.sites[static_cast<std::size_t>(j)].name;
      }
    }
  }
  if (report.bottleneck.link.empty()) report.bottleneck.link = "none: nothing is sent";
  report.bottleneck.link_busy_share = busiest_s / report.round.duration_s;
}

}  // namespace

RunReport report_frame(const Scenario& scenario, std::int64_t optimizer_steps) {
  RunReport report;
  report.notes = ignored_axes(scenario);
  report.optimizer_steps = optimizer_steps;
  report.tokens = optimizer_steps * scenario.workload.global_batch_sequences * scenario.model.sequence_length;
  const double memory_bytes = memory_per_site(scenario).total();
  for (int site = 0; site < scenario.sites(); ++site) {
    SiteReport row;
    row.name = scenario.platform.sites[static_cast<std::size_t>(site)].name;
    row.memory_bytes = local_batch_sequences(scenario, site) > 0 ? memory_bytes : 0;
    report.sites.push_back(row);
  }
  report.provenance = compute_times(scenario, 1).provenance;
  report.provenance.insert(report.provenance.end(), scenario.platform.provenance.begin(),
                           scenario.platform.provenance.end());
  const StepVariation& variation = scenario.variation;
  if (variation.varies())
    report.provenance.push_back(
        {"steps that vary", variation.from_samples ? Origin::measured : Origin::assumed,
         variation.from_samples ? "drawn from the profile's samples" : "drawn; given in the scenario"});
  const double efficiency = scenario.network.bandwidth_efficiency;
  report.provenance.push_back(
      {"bandwidth efficiency", Origin::assumed,
       efficiency == 1.0 ? "1: payload gets the whole link" : "given in the scenario"});
  for (const std::string& term : switched_on(scenario.network))
    report.provenance.push_back({"network model", Origin::assumed, term});
  report.provenance.push_back({"bytes sent", Origin::computed, "from the model's shape and the plan"});
  report.provenance.push_back(memory_provenance(scenario));
  if (const std::string note = memory_note(scenario); !note.empty()) report.notes.push_back(note);
  return report;
}

void finish_report(RunReport& report) {
  const auto sites = static_cast<double>(report.sites.size());
  const auto rounds = static_cast<double>(report.round.count);
  MeanRound& round = report.round;
  round.compute_s = round.exposed_communication_s = round.idle_s = 0;
  double sent = 0;
  for (const SiteReport& site : report.sites) {
    round.compute_s += site.compute_s / sites;
    round.exposed_communication_s += site.exposed_communication_s / sites;
    round.idle_s += site.idle_s / sites;
    sent += site.bytes_sent;
  }
  if (round.transferring_s > 0)
    round.overlap_achieved = std::max(0.0, 1 - round.exposed_communication_s / round.transferring_s);
  report.compute_utilization = round.compute_s * rounds / report.wall_clock_s;
  report.tokens_per_s = static_cast<double>(report.tokens) / report.wall_clock_s;
  report.bytes_per_token = sent / static_cast<double>(report.tokens);
  report.bytes_sent_per_site_per_round = sent / sites / rounds;
  report.bottleneck.limited_by =
      round.compute_s >= round.exposed_communication_s ? "compute" : "communication";
}

RunReport assemble_report(const Scenario& scenario, const Plan& plan,
                          const std::vector<Timeline>& timelines) {
  RunReport report = report_frame(scenario, plan.steps);
  report.notes.insert(report.notes.begin(), plan.notes.begin(), plan.notes.end());
  report.round.count = plan.rounds;
  const int nodes = static_cast<int>(plan.nodes.size());
  const auto rounds = static_cast<double>(plan.rounds);
  PairBytes per_round(static_cast<int>(report.sites.size()));
  double variance_s2 = 0;
  std::size_t fewest_samples = 0;
  std::size_t longest = 0;  // the class whose rounds take most of the time
  double longest_s = 0;

  for (std::size_t c = 0; c < plan.classes.size(); ++c) {
    const ClassMeans means = means_of(plan, report.sites.size(), plan.classes[c], timelines[c]);
    const auto count = static_cast<double>(plan.classes[c].count);
    report.wall_clock_s += means.total_s;
    if (means.total_s > longest_s) longest = c;
    longest_s = std::max(longest_s, means.total_s);
    variance_s2 += means.variance_s2;
    if (means.variance_s2 > 0)
      fewest_samples = fewest_samples == 0 ? timelines[c].rounds.size()
                                           : std::min(fewest_samples, timelines[c].rounds.size());
    report.round.communication_s += means.communication_s * count / rounds;
    report.round.transferring_s += means.transferring_s * count / rounds;
    for (std::size_t s = 0; s < report.sites.size(); ++s) {
      report.sites[s].compute_s += means.compute_s[s] * count / rounds;
      report.sites[s].exposed_communication_s += means.exposed_s[s] * count / rounds;
    }
    for (int node = 0; node < nodes; ++node) {
      const int from = plan.nodes[static_cast<std::size_t>(node)].site;
      for (int peer = 0; peer < nodes; ++peer) {
        const int to = plan.nodes[static_cast<std::size_t>(peer)].site;
        if (from == to) continue;  // stays inside the site
        const double bytes = means.sent.at(node, peer) * count;
        report.sites[static_cast<std::size_t>(from)].bytes_sent += bytes;
        report.sites[static_cast<std::size_t>(to)].bytes_received += bytes;
        per_round.at(from, to) += bytes / rounds;
      }
    }
  }
  if (fewest_samples > 1) {
    const double half = student_t(static_cast<std::int64_t>(fewest_samples) - 1) * std::sqrt(variance_s2);
    if (half > 1e-6 * report.wall_clock_s)  // rounds that could differ need not
      report.wall_clock_interval_s = Interval95{report.wall_clock_s - half, report.wall_clock_s + half};
  }
  if (longest < timelines.size() && !timelines[longest].rounds.empty()) {
    // Of overlapping rounds the last one empties the pipeline: one in the middle is like most.
    const std::size_t executed = timelines[longest].rounds.size();
    const bool overlapping = plan.classes[longest].overlapping && executed > 3;
    report.critical_path =
        critical_path(plan, report.sites, timelines[longest], overlapping ? executed - 3 : executed - 1);
    if (plan.classes.size() > 1)
      report.notes.push_back("rounds are of " + std::to_string(plan.classes.size()) +
                             " kinds: what a round waits for is of the kind that takes longest in all, " +
                             std::to_string(plan.classes[longest].count) + " of " +
                             std::to_string(plan.rounds) + " rounds");
  }
  report.round.duration_s = report.wall_clock_s / rounds;
  for (SiteReport& site : report.sites) {
    site.idle_s = std::max(0.0, report.round.duration_s - site.compute_s - site.exposed_communication_s);
  }
  finish_report(report);
  find_busiest_link(report, effective_platform(scenario.platform, scenario.network), per_round);
  add_cost(report, scenario);
  add_quality(report, scenario);
  add_goodput(report, scenario);
  return report;
}

}  // namespace fomoe::costmodel
