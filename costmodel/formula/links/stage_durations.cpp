#include "costmodel/formula/links/stage_durations.hpp"

#include <algorithm>
#include <cmath>
#include <map>

#include "costmodel/formula/links/connection_window.hpp"
#include "costmodel/formula/links/region_links.hpp"
#include "costmodel/formula/links/shared_port.hpp"

namespace fomoe::costmodel {

namespace {

constexpr double kRounds = 5;  // after which windows repeat

/// Connections over links of one kind: the stage is over when the slowest of them has sent.
struct Way {
  Links links;
  ConnectionWindow window;
  /// The connections of a stage that halves, in the order of its peers, and when each has sent.
  struct Peer {
    ConnectionWindow window;
    double sent_at_s;
  };
  std::vector<Peer> peers = {};
  double now_s = 0;
  double share = 1;  // as of an OwnerHop
  int ring = 0;

  void pause(double seconds) {
    window.pause(seconds);
    now_s += seconds;
  }
};

/// Seconds that windows add to recursive halving and doubling: half of the payload to the first peer, a
/// quarter to the next one, …, and then the same messages in the opposite order.
double added_by_halving_s(const Stage& stage, Way& way, double streams) {
  const double rate = std::min(way.links.path_bytes_per_s, way.links.port_bytes_per_s()) / streams;
  const auto peers = static_cast<std::size_t>(std::lround(stage.latency_hops / 2));
  way.peers.resize(peers, {way.window, way.now_s});
  const double payload = stage.pair_bytes / 2 / (1 - std::exp2(-static_cast<double>(peers))) / streams;
  double sum_s = 0;
  for (std::size_t step = 0; step < 2 * peers; ++step) {
    const std::size_t index = step < peers ? step : 2 * peers - 1 - step;
    Way::Peer& peer = way.peers[index];
    const double bytes = payload * std::exp2(-static_cast<double>(index + 1));
    peer.window.pause(way.now_s - peer.sent_at_s);
    const double send_s = peer.window.send_s(bytes, rate);
    sum_s += send_s - bytes / rate;
    way.now_s += send_s + way.links.latency_s;
    peer.sent_at_s = way.now_s;
  }
  return sum_s;
}

/// Seconds that windows add to a connection's messages of the stage: one for each step.
double added_s(const Stage& stage, Way& way, double streams) {
  if (stage.pair_bytes <= 0) return 0;
  if (stage.halving) return added_by_halving_s(stage, way, streams);
  // The messages of a pair have its share of the port.
  const double rate =
      std::min(way.links.path_bytes_per_s, way.links.port_bytes_per_s() * stage.pair_bytes / stage.bytes) /
      streams;
  const double messages = stage.star ? 2 : std::max(1.0, std::round(stage.latency_hops));
  const double bytes = stage.pair_bytes / messages / streams;
  double sum_s = 0, before_s = -1;
  for (double i = 0; i < messages; ++i) {
    const double added_s = way.window.send_s(bytes, rate) - bytes / rate;
    sum_s += added_s;
    if (added_s <= 1e-12 || added_s == before_s) return sum_s + added_s * (messages - i - 1);
    before_s = added_s;
  }
  return sum_s;
}

/// Seconds that windows add to one of so many messages, the mean of all.
double added_to_message_s(Way& way, double messages, double bytes, double rate) {
  double sum_s = 0, before_s = -1;
  const double of_connection = bytes / way.links.connections, its_rate = rate / way.links.connections;
  for (double i = 0; i < messages; ++i) {
    const double added_s = way.window.send_s(of_connection, its_rate) - of_connection / its_rate;
    sum_s += added_s;
    if (added_s <= 1e-12 || added_s == before_s) return (sum_s + added_s * (messages - i - 1)) / messages;
    before_s = added_s;
  }
  return sum_s / std::max(1.0, messages);
}

class Windows {
 public:
  explicit Windows(const LinkSets& links) : links_(links) {}

  /// The stage once more, after a pause of its connections.
  StageDuration next(const Stage& stage, double pause_s) {
    StageDuration sum;
    for (const StagePart& part : parts_of(stage, links_)) {
      StageDuration longest;
      for (const LinkSets* links : part.links) {
        const StageDuration now = next(part.stage, *links, pause_s);
        if (now.seconds > longest.seconds) longest = now;
      }
      sum.seconds += longest.seconds;
      sum.windows_s += longest.windows_s;
    }
    return sum;
  }

 private:
  StageDuration next(const Stage& stage, const LinkSets& links, double pause_s) {
    if (stage.between == Between::owners) return next_of_owners(stage, links, pause_s);
    const bool ring = stage.between == Between::ring && links.sites != nullptr;
    const double before_s = stage_s(stage, links);
    StageDuration longest{before_s, 0};
    for (Way& way : ways_of(stage.between, links)) {
      way.pause(pause_s);
      const double added = added_s(stage, way, way.links.connections);
      const double seconds =
          ring ? stage_s(stage, way.links) + preparation_s(stage, links.payload_s_per_byte) : before_s;
      if (seconds + added > longest.seconds) longest = {seconds + added, added};
    }
    return longest;
  }

  /// Both rings send over the same connections, one message after another. In each ring, the hop with the
  /// longest steps makes all others wait.
  StageDuration next_of_owners(const Stage& stage, const LinkSets& links, double pause_s) {
    const Beside& beside = stage.beside;
    const auto send_s = [&](Way& way, double messages, double bytes, double share) {
      way.pause(pause_s);
      const double rate = std::min(way.links.path_bytes_per_s, share * way.links.port_bytes_per_s());
      return share * bytes / rate + added_to_message_s(way, messages, share * bytes, rate);
    };
    struct Sent {
      const Way* way;
      double seconds;
    };
    std::vector<Sent> all, owners;
    double step_s = 0;              // of the ring of all sites
    std::map<int, double> steps_s;  // of each ring of owners
    for (Way& way : ways_of(Between::ring, links)) {
      all.push_back(
          {&way, send_s(way, stage.latency_hops, (stage.bytes - beside.bytes) / stage.latency_hops, 1)});
      step_s = std::max(step_s, all.back().seconds + way.links.latency_s);
    }
    for (Way& way : ways_of(Between::owners, links)) {
      const double share = links.owners.empty() ? beside.largest_share : way.share;
      owners.push_back({&way, send_s(way, beside.hops, beside.bytes / beside.hops, share)});
      double& of_ring = steps_s[way.ring];
      of_ring = std::max(of_ring, owners.back().seconds + way.links.latency_s);
    }
    double longest_s = stage.latency_hops * step_s;
    for (const auto& [ring, of_ring] : steps_s) longest_s = std::max(longest_s, beside.hops * of_ring);
    for (const Sent& one : all) {
      for (const Sent& other : owners) {
        const Links &a = one.way->links, &b = other.way->links;
        if (a.from != b.from || a.to != b.to) continue;
        longest_s = std::max(
            longest_s, in_turn_s({stage.latency_hops, one.seconds, step_s - one.seconds},
                                 {beside.hops, other.seconds, steps_s[other.way->ring] - other.seconds}));
      }
    }
    const double before_s = stage_s(stage, links);
    const double seconds = std::max(before_s, longest_s + preparation_s(stage, links.payload_s_per_byte));
    return {seconds, seconds - before_s};
  }

  std::vector<Way>& ways_of(Between between, const LinkSets& sets) {
    std::vector<Way>& ways = ways_[{&sets, between}];
    if (!ways.empty()) return ways;
    const auto add = [&](const Links& links) {
      // Without latency, windows are no limit.
      const double most =
          links.round_trip_s > 0 ? links.cap_bytes_per_s * links.round_trip_s : platforms::kUnlimited;
      ways.push_back({links, ConnectionWindow(*sets.windows, links.round_trip_s, most / links.connections,
                                              !links.measured_connection)});
    };
    if (between == Between::store && sets.store != nullptr) {
      for (const StoreLinks::Site& site : sets.store->sites)
        add({site.up_bytes_per_s, site.down_bytes_per_s, platforms::kUnlimited, site.up_latency_s,
             site.up_latency_s + site.down_latency_s, site.cap_bytes_per_s, -1, -1, site.connections});
      return ways;
    }
    if (sets.sites == nullptr || between == Between::any) {
      add(sets.all);
      return ways;
    }
    if (between == Between::owners) {
      for (const OwnerLinks& hop : sets.owners) {
        add(hop.links);
        ways.back().share = hop.share;
        ways.back().ring = hop.ring;
      }
      return ways;
    }
    for (const Links& links : between == Between::ring    ? sets.ring
                              : between == Between::pairs ? sets.pairs
                                                          : sets.first_site)
      add(links);
    return ways;
  }

  const LinkSets& links_;
  std::map<std::pair<const LinkSets*, Between>, std::vector<Way>> ways_;
};

}  // namespace

std::vector<StageDuration> stage_durations(const PlanSummary& summary, const LinkSets& links,
                                           double compute_s) {
  std::vector<StageDuration> mean(summary.stages.size());
  if (links.windows == nullptr) {
    for (std::size_t i = 0; i < mean.size(); ++i) mean[i].seconds = stage_s(summary.stages[i], links);
    return mean;
  }
  Windows windows(links);
  const double rounds = std::min(kRounds, std::max(1.0, summary.rounds));
  for (double round = 0; round < rounds; ++round) {
    // The last of these rounds stands for all later ones.
    std::map<std::pair<Among, Between>, bool> used;
    for (std::size_t i = 0; i < mean.size(); ++i) {
      const Stage& stage = summary.stages[i];
      if (stage.times_per_round == 0) continue;
      const double times = std::max(1.0, stage.times_per_round * summary.rounds);
      const double share = std::clamp(times - round, 0.0, round + 1 < rounds ? 1.0 : times) / times;
      double pause_s = 0;
      if (!std::exchange(used[{stage.among, stage.between}], true)) {
        pause_s = compute_s / stage.times_per_round;
        const bool hidden = stage.hidden_steps > 0 || stage.hidden_backwards > 0;
        if (hidden) pause_s = std::max(0.0, pause_s - stage_s(stage, links));
      }
      const StageDuration now = windows.next(stage, pause_s);
      mean[i].seconds += share * now.seconds;
      mean[i].windows_s += share * now.windows_s;
    }
  }
  return mean;
}

}  // namespace fomoe::costmodel
