#include "costmodel/report_assembly.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <utility>

#include "costmodel/closed_form.hpp"
#include "costmodel/memory.hpp"

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

// Length of the union of `a` that no span of `b` covers.
double covered_without(const std::vector<Span>& a, const std::vector<Span>& b) {
  std::vector<Span> both = a;
  both.insert(both.end(), b.begin(), b.end());
  return covered(both) - covered(b);
}

struct NodeRound {
  double compute_s = 0;
  double exposed_s = 0;
};

// The mean round of one class, and how long all its rounds take together.
struct ClassMeans {
  double duration_s = 0;
  double total_s = 0;
  double communication_s = 0;
  std::vector<NodeRound> nodes;
  PairBytes sent;  // per round
};

ClassMeans means_of(const RoundClass& rounds, const Timeline& timeline, int nodes) {
  const std::size_t executed = timeline.rounds.size();
  // Identical rounds: only the last one counts, the state is steady there. Random rounds: all are samples.
  const bool complete = static_cast<std::int64_t>(executed) == rounds.count;
  const std::size_t first = rounds.identical && !complete ? executed - 1 : 0;
  const auto window = static_cast<double>(executed - first);
  const double window_start_s = first == 0 ? 0.0 : timeline.round_end_s[first - 1];

  ClassMeans means;
  means.duration_s = (timeline.round_end_s.back() - window_start_s) / window;
  means.total_s = timeline.round_end_s.back() +
                  static_cast<double>(rounds.count - static_cast<std::int64_t>(executed)) * means.duration_s;
  means.sent = timeline.sent;
  for (double& bytes : means.sent.bytes) bytes /= static_cast<double>(executed);

  std::vector<std::vector<Span>> computing(static_cast<std::size_t>(nodes)),
      transferring(static_cast<std::size_t>(nodes));
  std::map<std::pair<std::int64_t, std::int32_t>, Span> operations;  // (round, op) → hull over nodes
  for (const Interval& interval : timeline.intervals) {
    if (interval.round < static_cast<std::int64_t>(first)) continue;
    const auto node = static_cast<std::size_t>(interval.node);
    if (interval.activity == Activity::compute) {
      computing[node].push_back({interval.start_s, interval.end_s});
      continue;
    }
    auto [it, inserted] =
        operations.try_emplace({interval.round, interval.op}, interval.start_s, interval.end_s);
    if (!inserted)
      it->second = {std::min(it->second.first, interval.start_s),
                    std::max(it->second.second, interval.end_s)};
  }
  for (const FlowSpan& flow : timeline.flows) {
    if (flow.round < static_cast<std::int64_t>(first)) continue;
    transferring[static_cast<std::size_t>(flow.node)].push_back({flow.start_s, flow.end_s});
  }
  for (std::size_t node = 0; node < static_cast<std::size_t>(nodes); ++node) {
    means.nodes.push_back(
        {covered(computing[node]) / window, covered_without(transferring[node], computing[node]) / window});
  }
  // Rounds of different nodes may overlap in time; each round's transfers count for themselves.
  std::map<std::int64_t, std::vector<Span>> by_round;
  for (const auto& [key, span] : operations) by_round[key.first].push_back(span);
  for (const auto& [round, spans] : by_round) means.communication_s += covered(spans) / window;
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
  report.optimizer_steps = optimizer_steps;
  report.tokens = optimizer_steps * scenario.workload.global_batch_sequences * scenario.model.sequence_length;
  const double memory_bytes = memory_per_site(scenario).total();
  for (const platforms::Site& site : scenario.platform.sites) {
    SiteReport row;
    row.name = site.name;
    row.memory_bytes = memory_bytes;
    report.sites.push_back(row);
  }
  report.provenance = compute_times(scenario, 1).provenance;
  report.provenance.insert(report.provenance.end(), scenario.platform.provenance.begin(),
                           scenario.platform.provenance.end());
  const double efficiency = scenario.network.bandwidth_efficiency;
  report.provenance.push_back(
      {"bandwidth efficiency", Origin::assumed,
       efficiency == 1.0 ? "1: payload gets the whole link" : "given in the scenario"});
  for (const std::string& term : switched_on(scenario.network))
    report.provenance.push_back({"network model", Origin::assumed, term});
  report.provenance.push_back({"bytes sent", Origin::computed, "from the model's shape and the plan"});
  report.provenance.push_back(
      {"memory", Origin::computed, "18 B a parameter and outer state; activations not included"});
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
  report.notes = plan.notes;
  report.round.count = plan.rounds;
  const int nodes = static_cast<int>(plan.nodes.size());
  const auto rounds = static_cast<double>(plan.rounds);
  PairBytes per_round(static_cast<int>(report.sites.size()));

  for (std::size_t c = 0; c < plan.classes.size(); ++c) {
    const ClassMeans means = means_of(plan.classes[c], timelines[c], nodes);
    const auto count = static_cast<double>(plan.classes[c].count);
    report.wall_clock_s += means.total_s;
    report.round.communication_s += means.communication_s * count / rounds;
    for (int n = 0; n < nodes; ++n) {
      const int from = plan.nodes[static_cast<std::size_t>(n)].site;
      SiteReport& site = report.sites[static_cast<std::size_t>(from)];
      site.compute_s += means.nodes[static_cast<std::size_t>(n)].compute_s * count / rounds;
      site.exposed_communication_s += means.nodes[static_cast<std::size_t>(n)].exposed_s * count / rounds;
      for (int peer = 0; peer < nodes; ++peer) {
        const int to = plan.nodes[static_cast<std::size_t>(peer)].site;
        const double bytes = means.sent.at(n, peer) * count;
        site.bytes_sent += bytes;
        report.sites[static_cast<std::size_t>(to)].bytes_received += bytes;
        if (from != to) per_round.at(from, to) += bytes / rounds;
      }
    }
  }
  report.round.duration_s = report.wall_clock_s / rounds;
  for (SiteReport& site : report.sites) {
    site.idle_s = std::max(0.0, report.round.duration_s - site.compute_s - site.exposed_communication_s);
  }
  finish_report(report);
  find_busiest_link(report, effective_platform(scenario.platform, scenario.network), per_round);
  return report;
}

}  // namespace fomoe::costmodel
