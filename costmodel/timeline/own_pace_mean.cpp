#include "costmodel/timeline/own_pace_mean.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "costmodel/math/spans.hpp"

namespace fomoe::costmodel {

namespace {

/// The cycles of one worker that count.
struct Cycles {
  double count = 0, sequences = 0;  // sequences of all of them
  Span window{0, 0};
  double variation2 = 0;              // squared coefficient of variation of their durations
  double executed = 0;                // cycles in the whole sample
  double uploads = 0, downloads = 0;  // transfers in the window, also parts of one; of a whole run: all
  [[nodiscard]] double seconds() const { return window.second - window.first; }
  [[nodiscard]] double sequences_per_s() const { return seconds() > 0 ? sequences / seconds() : 0; }
};

/// Whose model a transfer carries. Other transfers have data or checkpoints, beside the cycles.
enum class Direction : char { other, upload, download };

/// What the plan says of the executed rounds.
struct Planned {
  std::vector<double> steps_of_cycle;              // [node]: optimiser steps; 0 without any cycle
  std::vector<std::vector<Direction>> directions;  // [position][op], of transfers
  PairBytes other;                                 // of all executed rounds
  std::size_t fragments = 1;
};

bool of_model(const Exchange& exchange) {
  return std::any_of(exchange.payloads.begin(), exchange.payloads.end(), [](const Payload& payload) {
    return payload.traffic == TrafficClass::dense || payload.traffic == TrafficClass::expert_sync;
  });
}

Planned planned(const Plan& plan, const Timeline& timeline) {
  Planned found;
  found.steps_of_cycle.assign(plan.nodes.size(), 0);
  const auto is_server = [&](NodeId node) {
    return plan.nodes[static_cast<std::size_t>(node)].kind == NodeKind::server;
  };
  for (const std::int64_t index : timeline.rounds) {
    const RoundPlan round = plan.round(index);
    std::vector<Direction>& directions = found.directions.emplace_back(round.ops.size(), Direction::other);
    for (std::size_t op = 0; op < round.ops.size(); ++op) {
      if (const auto* compute = std::get_if<Compute>(&round.ops[op].what)) {
        if (compute->work == Work::whole_step)
          for (const NodeId node : compute->nodes)
            found.steps_of_cycle[static_cast<std::size_t>(node)] = static_cast<double>(compute->repeat);
        continue;
      }
      for (const Exchange& exchange : std::get<Transfer>(round.ops[op].what).exchanges) {
        if (!of_model(exchange)) {
          found.other.add(exchange.nodes.front(), exchange.nodes.back(),
                          static_cast<double>(chunk_bytes(exchange, 1, 0)));
          continue;
        }
        directions[op] = Direction::upload;
        if (!is_server(exchange.nodes.front())) continue;
        directions[op] = Direction::download;
        found.fragments = static_cast<std::size_t>(exchange.payloads.front().chunks);
      }
    }
  }
  return found;
}

struct Ends {
  /// When the cycles of a worker end: when the next one can begin, since its steps are done and the fragment
  /// that it will send is back.
  std::vector<double> cycles;
  std::vector<Span> uploads, downloads;
};

Ends ends_s(const Planned& plan, const Timeline& timeline, NodeId worker) {
  Ends found;
  std::vector<double>& steps = found.cycles;
  std::vector<double> downloads;
  for (const Interval& interval : timeline.intervals) {
    if (interval.node != worker) continue;
    if (interval.activity == Activity::compute) steps.push_back(interval.end_s);
    if (interval.activity != Activity::transfer) continue;
    const Direction direction =
        plan.directions[static_cast<std::size_t>(interval.round)][static_cast<std::size_t>(interval.op)];
    if (direction == Direction::other) continue;
    const bool download = direction == Direction::download;
    (download ? found.downloads : found.uploads).emplace_back(interval.start_s, interval.end_s);
    if (download) downloads.push_back(interval.end_s);
  }
  std::sort(steps.begin(), steps.end());
  std::sort(downloads.begin(), downloads.end());
  steps.resize(std::min(steps.size(), downloads.size() + plan.fragments - 1));
  for (std::size_t i = plan.fragments - 1; i < steps.size(); ++i)
    steps[i] = std::max(steps[i], downloads[i + 1 - plan.fragments]);
  return found;
}

/// How many of the transfers are within the window, also parts of one.
double within(const std::vector<Span>& transfers, const Span& window) {
  double sum = 0;
  for (const auto& [start_s, end_s] : transfers) {
    const double inside_s = std::min(end_s, window.second) - std::max(start_s, window.first);
    if (inside_s > 0) sum += inside_s / (end_s - start_s);
  }
  return sum;
}

Cycles cycles_of(const Planned& plan, const Timeline& timeline, NodeId worker, double sequences,
                 bool all_executed) {
  const Ends found = ends_s(plan, timeline, worker);
  const std::vector<double>& ends = found.cycles;
  Cycles cycles;
  cycles.executed = static_cast<double>(ends.size());
  if (ends.empty()) return cycles;
  std::size_t first = all_executed ? 0 : ends.size() / 4;
  if (ends.size() - first < 2) first = 0;
  cycles.count = static_cast<double>(ends.size() - first);
  cycles.window = {first == 0 ? 0 : ends[first - 1], ends.back()};
  // A whole run sends its last fragments too, after its last steps.
  const auto count = [&](const std::vector<Span>& transfers) {
    return all_executed ? static_cast<double>(transfers.size()) : within(transfers, cycles.window);
  };
  cycles.uploads = count(found.uploads);
  cycles.downloads = count(found.downloads);
  cycles.sequences = cycles.count * plan.steps_of_cycle[static_cast<std::size_t>(worker)] * sequences;
  const double mean_s = cycles.seconds() / cycles.count;
  double squares = 0;
  for (std::size_t i = first; i < ends.size(); ++i) {
    const double seconds = ends[i] - (i == 0 ? 0 : ends[i - 1]);
    squares += (seconds - mean_s) * (seconds - mean_s);
  }
  if (cycles.count > 1 && mean_s > 0) cycles.variation2 = squares / (cycles.count - 1) / (mean_s * mean_s);
  return cycles;
}

Span clipped(const Span& span, const Span& window) {
  return {std::clamp(span.first, window.first, window.second),
          std::clamp(span.second, window.first, window.second)};
}

}  // namespace

ClassMean own_pace_mean(const Plan& plan, std::size_t sites, const RoundClass& round_class,
                        const Timeline& timeline) {
  const bool all = static_cast<std::int64_t>(timeline.rounds.size()) >= round_class.count;
  const auto rounds = static_cast<double>(round_class.count);
  std::vector<Cycles> cycles(sites);  // of the site's worker
  const Planned rounds_planned = planned(plan, timeline);
  double sequences = 0, sequences_per_s = 0;
  for (std::size_t n = 0; n < plan.nodes.size(); ++n) {
    const Node& node = plan.nodes[n];
    if (node.kind != NodeKind::worker) continue;
    Cycles& own = cycles[static_cast<std::size_t>(node.site)];
    own = cycles_of(rounds_planned, timeline, static_cast<NodeId>(n), node.sequences, all);
    sequences += node.sequences * static_cast<double>(plan.steps);
    sequences_per_s += own.sequences_per_s();
  }

  ClassMean means;
  means.total_s = sequences_per_s > 0 ? sequences / sequences_per_s : end_of(timeline);
  std::vector<std::vector<Span>> computing(sites), transferring(sites);
  const auto add = [&](std::vector<std::vector<Span>>& spans, std::int32_t node, double start_s,
                       double end_s) {
    const auto site = static_cast<std::size_t>(plan.nodes[static_cast<std::size_t>(node)].site);
    spans[site].push_back(clipped({start_s, end_s}, cycles[site].window));
  };
  for (const Interval& interval : timeline.intervals)
    if (interval.activity == Activity::compute)
      add(computing, interval.node, interval.start_s, interval.end_s);
  for (const FlowSpan& flow : timeline.flows) add(transferring, flow.node, flow.start_s, flow.end_s);
  const double round_s = means.total_s / rounds;
  double remote = 0;
  for (std::size_t s = 0; s < sites; ++s) {
    const double window_s = cycles[s].seconds();
    const double part = window_s > 0 ? round_s / window_s : 0;  // of a round, in this site's window
    means.compute_s.push_back(part * covered(computing[s]));
    means.exposed_s.push_back(part * uncovered(transferring[s], computing[s]));
    const double transferring_s = part * covered(transferring[s]);
    means.transferring_s += transferring_s / static_cast<double>(sites);
    if (s == 0) continue;  // the server's site
    means.communication_s += transferring_s;
    ++remote;
    if (all || window_s <= 0 || sequences_per_s <= 0) continue;
    const double share = cycles[s].sequences_per_s() / sequences_per_s;
    means.variance_s2 += means.total_s * means.total_s * share * share * cycles[s].variation2 *
                         (1 / cycles[s].count + window_s / cycles[s].count / means.total_s);
    means.sampled_rounds += static_cast<std::size_t>(cycles[s].count);
  }
  if (remote > 0) means.communication_s /= remote;
  if (means.sampled_rounds < 2) means.variance_s2 = 0;
  for (const auto& [pair, bytes] : timeline.sent.bytes) {
    const int from = plan.nodes[static_cast<std::size_t>(pair.first)].site,
              to = plan.nodes[static_cast<std::size_t>(pair.second)].site;
    const Cycles& own =
        cycles[static_cast<std::size_t>(std::max(from, to))];  // one of both is the server's site
    if (own.executed == 0 || own.seconds() <= 0) continue;
    // At the beginning of a sample, a worker trains all fragments before the first one is back, and at its
    // end fragments are still under way: transfers are not as many as cycles.
    const double transfers = from > to ? own.uploads : own.downloads;
    const double of_cycles = bytes - rounds_planned.other.at(pair.first, pair.second);
    means.sent.add(pair.first, pair.second, of_cycles / own.executed * round_s * transfers / own.seconds());
  }
  const auto executed = static_cast<double>(std::max<std::size_t>(1, timeline.rounds.size()));
  for (const auto& [pair, bytes] : rounds_planned.other.bytes)
    means.sent.add(pair.first, pair.second, bytes / executed);
  return means;
}

}  // namespace fomoe::costmodel
