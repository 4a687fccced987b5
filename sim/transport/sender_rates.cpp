#include "sim/transport/sender_rates.hpp"

#include <algorithm>
#include <vector>

#include "costmodel/inputs/network_model.hpp"

namespace fomoe::sim {

namespace {

// Links hold a sender back if it delivers less than this fraction of its pacing rate.
constexpr double kHeldBack = 0.97;
// Assumed: the rate at the end of a start-up is drawn uniformly within ± this fraction. In traces, the rates
// of 88 connections deviated from their site's mean by 8 % (median).
constexpr double kStartupSpread = 0.15;
// The smallest burst of Linux's tcp_tso_autosize: 2 segments of 1448 bytes each, per millisecond.
constexpr double kLeastBurst_bytes_per_s = 2 * 1448 / 1e-3;
constexpr int kMostCycles = 8;  // cycles between two samples of a sender that is held back, at most
constexpr double kRounding = 1e-9;
// Shorter samples carry no information, and shorter round trips would cause too many timer events.
constexpr double kShortestSample_round_trips = 0.01, kShortestRoundTrip_s = 1e-3;

}  // namespace

void SenderRates::restart() {
  for (const auto& [pair, sender] : senders_) around_.limit(pair, kUnlimited);
  senders_.clear();
}

void SenderRates::begin_sample(Pair pair, Sender& sender) const {
  sender.sampled_s = around_.now();
  sender.sampled_bytes = around_.delivered_bytes(pair);
}

void SenderRates::flow_began(Pair pair) {
  sample_those_beside(pair);
  Sender& began = senders_[pair];
  if (began.in_flight++ > 0) return;
  const auto [from, to] = around_.ports(pair);
  sending_[from].insert(pair);
  receiving_[to].insert(pair);
  if (!began.paused) begin_spell(pair, began);
  share_uplink(from);
  look_later(pair);
}

void SenderRates::flow_ended(Pair pair) {
  sample_those_beside(pair);
  Sender& ended = senders_.at(pair);
  if (--ended.in_flight > 0) return;
  ended.silent_since_s = around_.now();
  const auto [from, to] = around_.ports(pair);
  sending_[from].erase(pair);
  receiving_[to].erase(pair);
  share_uplink(from);
}

void SenderRates::paused(Pair pair, bool is) {
  Sender& one = senders_.at(pair);
  if (one.in_flight > 0) sample_those_beside(pair);
  one.paused = is;
  if (is) one.silent_since_s = around_.now();
  if (!is && one.in_flight > 0) begin_spell(pair, one);
  share_uplink(around_.ports(pair).first);
}

void SenderRates::while_links_change(const std::function<void()>& change) {
  for (const auto& [site, pairs] : sending_) sample_all(pairs);
  change();
  for (const auto& [site, pairs] : sending_) {
    share_uplink(site);
    for (const Pair& pair : pairs) look_later(pair);
  }
}

void SenderRates::sample_those_beside(Pair pair) {
  const auto [from, to] = around_.ports(pair);
  sample_all(sending_[from]);
  sample_all(receiving_[to]);
}

void SenderRates::sample_all(const std::set<Pair>& pairs) {
  for (const Pair& pair : pairs) {
    sample(pair);
    look_later(pair);
  }
}

void SenderRates::begin_spell(Pair pair, Sender& sender) const {
  const double round_trip_s = this->round_trip_s(pair), silence_s = around_.now() - sender.silent_since_s;
  if (silence_s < kShortestSample_round_trips * round_trip_s)
    return;  // too short a silence to begin a new spell
  begin_sample(pair, sender);
  sender.spell_began_s = sender.sampled_s;
  sender.active_s += std::min(silence_s, round_trip_s);
}

// The delivery rate that the acknowledgement of the byte sent now will report. There are two cases:
//   - A byte was sent exactly one round trip ago, whose acknowledgement arrives now. The rate is the bytes
//     sent since then ÷ round trip.
//   - No byte was sent then. The rate is the bytes sent since the sender resumed ÷ (round trip + the time
//     from the last acknowledgement, or from the start if nothing was in flight, until now).
double SenderRates::seen_bytes_per_s(const Sender& sender, double round_trip_s) const {
  const double now_s = sender.sampled_s, back_s = now_s - round_trip_s;
  double silent_from_s = -kNever;
  for (const Span& span : sender.sent) {
    if (span.ended_s <= back_s) {
      silent_from_s = span.ended_s;
    } else if (span.began_s <= back_s) {
      const double share = (back_s - span.began_s) / (span.ended_s - span.began_s);
      const double then_bytes = span.began_bytes + share * (span.ended_bytes - span.began_bytes);
      return (sender.sampled_bytes - then_bytes) / round_trip_s;
    } else {
      const double from_s = std::max(silent_from_s, span.began_s - round_trip_s);
      return (sender.sampled_bytes - span.began_bytes) / (now_s - from_s);
    }
  }
  return 0;
}

void SenderRates::sample(Pair pair) {
  Sender& one = senders_.at(pair);
  const double round_trip_s = this->round_trip_s(pair);
  const Span span{one.sampled_s, one.sampled_bytes, around_.now(), around_.delivered_bytes(pair)};
  const double passed_s = span.ended_s - span.began_s, bytes = span.ended_bytes - span.began_bytes;
  if (one.paused || passed_s < kShortestSample_round_trips * round_trip_s) return;
  begin_sample(pair, one);
  one.sent.push_back(span);
  while (one.sent.front().ended_s < span.ended_s - 2 * round_trip_s) one.sent.pop_front();
  if (bytes < 1) return;  // a link is down, so nothing is acknowledged
  one.active_s += passed_s;
  // Until its first acknowledgement, a sender cannot distinguish slow links from a lack of data to send.
  const double age_s = span.ended_s - one.spell_began_s;
  const bool acknowledged = age_s >= round_trip_s * (1 - kRounding);
  const double start_s = costmodel::kBbrStartup_round_trips * round_trip_s * (1 - kRounding);
  const bool had_started = !one.most_first.empty();
  if (acknowledged) one.filled_s += age_s - passed_s < round_trip_s * (1 - kRounding) ? age_s : passed_s;
  if (!had_started && (!acknowledged || one.filled_s < start_s)) return;
  const double seen =
      seen_bytes_per_s(one, round_trip_s) * (had_started ? 1 : 1 + kStartupSpread * around_.draw(pair));
  if (acknowledged || seen > one.most_first.front().bytes_per_s) {
    while (!one.most_first.empty() && one.most_first.back().bytes_per_s <= seen) one.most_first.pop_back();
    one.most_first.push_back({one.active_s, seen});
    while (one.most_first.front().until_active_s <
           one.active_s - costmodel::kBbrMemory_round_trips * round_trip_s)
      one.most_first.pop_front();
  }

  const double before = one.paces_bytes_per_s, most = one.most_first.front().bytes_per_s;
  one.held_back = acknowledged && bytes < kHeldBack * one.paces_bytes_per_s * passed_s;
  if (one.held_back) {
    one.paces_bytes_per_s = costmodel::kBbrRaise * most;
    one.next_raise_s = around_.now() + (costmodel::kBbrCycle_round_trips - 1) * round_trip_s;
  } else if (around_.now() >= one.next_raise_s - kRounding * round_trip_s) {
    one.paces_bytes_per_s = costmodel::kBbrRaise * most;
    one.next_raise_s =
        around_.now() + (acknowledged_late(pair) ? costmodel::kBbrCycle_round_trips : 1) * round_trip_s;
  }
  if (one.paces_bytes_per_s != before) share_uplink(around_.ports(pair).first);
}

double SenderRates::paced_bytes_per_s(int site) const {
  const auto found = sending_.find(site);
  if (found == sending_.end()) return 0;
  double sum = 0;
  for (const Pair& pair : found->second)
    sum += senders_.at(pair).paused ? 0 : senders_.at(pair).paces_bytes_per_s;
  return sum;
}

// The bytes of all senders of a site go through one queue, in which each sender has one or two bursts at a
// time (TCP small queues). A burst is what the sender paces in a millisecond, but at least two segments. The
// queue thus serves the senders in proportion to
//   weight = max(pacing rate, 2 segments ÷ 1 ms)
// A sender whose pacing rate is below its share gets its pacing rate; the others share the rest. If one
// sender has no pacing rate yet, the others keep their pacing rates, and the link decides.
void SenderRates::share_uplink(int site) {
  std::vector<Pair> sharing;
  double left = around_.uplink_bytes_per_s(site), weights = 0;
  const auto weight = [](const Sender& one) {
    return std::max(one.paces_bytes_per_s, kLeastBurst_bytes_per_s);
  };
  for (const Pair& pair : sending_[site]) {
    if (senders_.at(pair).paused) continue;
    sharing.push_back(pair);
    weights += weight(senders_.at(pair));
  }
  const bool undecided = weights == kUnlimited;
  for (bool settled = false; !settled && !sharing.empty();) {
    settled = true;
    const double share = undecided ? kUnlimited : left / weights;
    std::erase_if(sharing, [&](const Pair& pair) {
      const Sender& one = senders_.at(pair);
      if (!undecided && one.paces_bytes_per_s > share * weight(one)) return false;
      limit(pair, one.paces_bytes_per_s);
      left -= one.paces_bytes_per_s;
      weights -= weight(one);
      settled = undecided;
      return true;
    });
  }
  for (const Pair& pair : sharing) limit(pair, left * weight(senders_.at(pair)) / weights);
}

void SenderRates::limit(Pair pair, double bytes_per_s) {
  Sender& one = senders_.at(pair);
  if (bytes_per_s == one.limit_bytes_per_s) return;
  one.limit_bytes_per_s = bytes_per_s;
  around_.limit(pair, bytes_per_s);
}

// A raise ends when 1.25 times the path's bandwidth-delay product is in flight. Since the sender's estimate
// of that product grows meanwhile, this happens only if acknowledgements queue behind the bytes that the
// receiver's site sends.
bool SenderRates::acknowledged_late(Pair pair) const {
  const int receiver = around_.ports(pair).second;
  return paced_bytes_per_s(receiver) >= around_.uplink_bytes_per_s(receiver);
}

// Schedules the next sample of a sender. The first is at the end of its start-up. A lone sender whose pacing
// rate is at least the uplink's rate needs none: nothing limits it until another sender begins or a link
// changes, and both of these sample the senders concerned.
void SenderRates::look_later(Pair pair, int cycles) {
  Sender& one = senders_.at(pair);
  const double round_trip_s = this->round_trip_s(pair), next_s = around_.now() + round_trip_s;
  double at_s =
      std::max(one.next_raise_s, next_s) + (cycles - 1) * costmodel::kBbrCycle_round_trips * round_trip_s;
  if (one.paces_bytes_per_s == kUnlimited)
    at_s = std::max(one.sampled_s + costmodel::kBbrStartup_round_trips * round_trip_s - one.filled_s, next_s);
  else if (const int from = around_.ports(pair).first;
           sending_[from].size() == 1 && one.paces_bytes_per_s >= around_.uplink_bytes_per_s(from))
    return;
  if (one.look_s <= at_s) return;
  one.look_s = at_s;
  around_.after(at_s - around_.now(), [this, pair, at_s, cycles] {
    if (senders_.at(pair).look_s == at_s) look(pair, cycles);
  });
}

// Takes a scheduled sample. As long as a sender is held back, its samples become less and less frequent.
void SenderRates::look(Pair pair, int cycles) {
  Sender& one = senders_.at(pair);
  one.look_s = kNever;
  if (one.in_flight == 0) return;
  sample(pair);
  look_later(pair, one.held_back ? std::min(2 * cycles, kMostCycles) : 1);
}

double SenderRates::round_trip_s(Pair pair) const {
  return std::max(around_.round_trip_s(pair), kShortestRoundTrip_s);
}

}  // namespace fomoe::sim
