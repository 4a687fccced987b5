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
  for (const auto& [pair, sender] : senders_) environment_.limit(pair, kUnlimited);
  senders_.clear();
}

void SenderRates::begin_sample(Pair pair, Sender& sender) const {
  sender.sampled_s = environment_.now();
  sender.sampled_bytes = environment_.delivered_bytes(pair);
}

void SenderRates::flow_began(Pair pair) {
  sample_neighbours(pair);
  Sender& began = senders_[pair];
  if (began.in_flight++ > 0) return;
  const auto [from, to] = environment_.ports(pair);
  sending_[from].insert(pair);
  receiving_[to].insert(pair);
  if (!began.paused) begin_spell(pair, began);
  share_uplink(from);
  schedule_sample(pair);
}

void SenderRates::flow_ended(Pair pair) {
  sample_neighbours(pair);
  Sender& ended = senders_.at(pair);
  if (--ended.in_flight > 0) return;
  ended.silent_since_s = environment_.now();
  const auto [from, to] = environment_.ports(pair);
  sending_[from].erase(pair);
  receiving_[to].erase(pair);
  share_uplink(from);
}

void SenderRates::paused(Pair pair, bool is) {
  Sender& sender = senders_.at(pair);
  if (sender.in_flight > 0) sample_neighbours(pair);
  sender.paused = is;
  if (is) sender.silent_since_s = environment_.now();
  if (!is && sender.in_flight > 0) begin_spell(pair, sender);
  share_uplink(environment_.ports(pair).first);
}

void SenderRates::while_links_change(const std::function<void()>& change) {
  for (const auto& [site, pairs] : sending_) sample_all(pairs);
  change();
  for (const auto& [site, pairs] : sending_) {
    share_uplink(site);
    for (const Pair& pair : pairs) schedule_sample(pair);
  }
}

void SenderRates::sample_neighbours(Pair pair) {
  const auto [from, to] = environment_.ports(pair);
  sample_all(sending_[from]);
  sample_all(receiving_[to]);
}

void SenderRates::sample_all(const std::set<Pair>& pairs) {
  for (const Pair& pair : pairs) {
    sample(pair);
    schedule_sample(pair);
  }
}

void SenderRates::begin_spell(Pair pair, Sender& sender) const {
  const double round_trip_s = this->round_trip_s(pair),
               silence_s = environment_.now() - sender.silent_since_s;
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
  Sender& sender = senders_.at(pair);
  const double round_trip_s = this->round_trip_s(pair);
  const Span span{sender.sampled_s, sender.sampled_bytes, environment_.now(),
                  environment_.delivered_bytes(pair)};
  const double passed_s = span.ended_s - span.began_s, bytes = span.ended_bytes - span.began_bytes;
  if (sender.paused || passed_s < kShortestSample_round_trips * round_trip_s) return;
  begin_sample(pair, sender);
  sender.sent.push_back(span);
  while (sender.sent.front().ended_s < span.ended_s - 2 * round_trip_s) sender.sent.pop_front();
  if (bytes < 1) return;  // a link is down, so nothing is acknowledged
  sender.active_s += passed_s;
  // Until its first acknowledgement, a sender cannot distinguish slow links from a lack of data to send.
  const double age_s = span.ended_s - sender.spell_began_s;
  const bool acknowledged = age_s >= round_trip_s * (1 - kRounding);
  const double start_s = costmodel::kBbrStartup_round_trips * round_trip_s * (1 - kRounding);
  const bool had_started = !sender.maximum_window.empty();
  if (acknowledged) sender.filled_s += age_s - passed_s < round_trip_s * (1 - kRounding) ? age_s : passed_s;
  if (!had_started && (!acknowledged || sender.filled_s < start_s)) return;
  const double seen = seen_bytes_per_s(sender, round_trip_s) *
                      (had_started ? 1 : 1 + kStartupSpread * environment_.draw(pair));
  if (acknowledged || seen > sender.maximum_window.front().bytes_per_s) {
    while (!sender.maximum_window.empty() && sender.maximum_window.back().bytes_per_s <= seen)
      sender.maximum_window.pop_back();
    sender.maximum_window.push_back({sender.active_s, seen});
    while (sender.maximum_window.front().until_active_s <
           sender.active_s - costmodel::kBbrMemory_round_trips * round_trip_s)
      sender.maximum_window.pop_front();
  }

  const double before = sender.pacing_bytes_per_s, most = sender.maximum_window.front().bytes_per_s;
  sender.held_back = acknowledged && bytes < kHeldBack * sender.pacing_bytes_per_s * passed_s;
  if (sender.held_back) {
    sender.pacing_bytes_per_s = costmodel::kBbrRaise * most;
    sender.next_raise_s = environment_.now() + (costmodel::kBbrCycle_round_trips - 1) * round_trip_s;
  } else if (environment_.now() >= sender.next_raise_s - kRounding * round_trip_s) {
    sender.pacing_bytes_per_s = costmodel::kBbrRaise * most;
    sender.next_raise_s =
        environment_.now() + (acknowledged_late(pair) ? costmodel::kBbrCycle_round_trips : 1) * round_trip_s;
  }
  if (sender.pacing_bytes_per_s != before) share_uplink(environment_.ports(pair).first);
}

double SenderRates::paced_bytes_per_s(int site) const {
  const auto found = sending_.find(site);
  if (found == sending_.end()) return 0;
  double sum = 0;
  for (const Pair& pair : found->second)
    sum += senders_.at(pair).paused ? 0 : senders_.at(pair).pacing_bytes_per_s;
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
  double left = environment_.uplink_bytes_per_s(site), weights = 0;
  const auto weight = [](const Sender& sender) {
    return std::max(sender.pacing_bytes_per_s, kLeastBurst_bytes_per_s);
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
      const Sender& sender = senders_.at(pair);
      if (!undecided && sender.pacing_bytes_per_s > share * weight(sender)) return false;
      limit(pair, sender.pacing_bytes_per_s);
      left -= sender.pacing_bytes_per_s;
      weights -= weight(sender);
      settled = undecided;
      return true;
    });
  }
  for (const Pair& pair : sharing) limit(pair, left * weight(senders_.at(pair)) / weights);
}

void SenderRates::limit(Pair pair, double bytes_per_s) {
  Sender& sender = senders_.at(pair);
  if (bytes_per_s == sender.limit_bytes_per_s) return;
  sender.limit_bytes_per_s = bytes_per_s;
  environment_.limit(pair, bytes_per_s);
}

// A raise ends when 1.25 times the path's bandwidth-delay product is in flight. Since the sender's estimate
// of that product grows meanwhile, this happens only if acknowledgements queue behind the bytes that the
// receiver's site sends.
bool SenderRates::acknowledged_late(Pair pair) const {
  const int receiver = environment_.ports(pair).second;
  return paced_bytes_per_s(receiver) >= environment_.uplink_bytes_per_s(receiver);
}

// Schedules the next sample of a sender. The first is at the end of its start-up. A lone sender whose pacing
// rate is at least the uplink's rate needs none: nothing limits it until another sender begins or a link
// changes, and both of these sample the senders concerned.
void SenderRates::schedule_sample(Pair pair, int cycles) {
  Sender& sender = senders_.at(pair);
  const double round_trip_s = this->round_trip_s(pair), next_s = environment_.now() + round_trip_s;
  double at_s =
      std::max(sender.next_raise_s, next_s) + (cycles - 1) * costmodel::kBbrCycle_round_trips * round_trip_s;
  if (sender.pacing_bytes_per_s == kUnlimited)
    at_s = std::max(sender.sampled_s + costmodel::kBbrStartup_round_trips * round_trip_s - sender.filled_s,
                    next_s);
  else if (const int from = environment_.ports(pair).first;
           sending_[from].size() == 1 && sender.pacing_bytes_per_s >= environment_.uplink_bytes_per_s(from))
    return;
  if (sender.next_sample_s <= at_s) return;
  sender.next_sample_s = at_s;
  environment_.after(at_s - environment_.now(), [this, pair, at_s, cycles] {
    if (senders_.at(pair).next_sample_s == at_s) take_scheduled_sample(pair, cycles);
  });
}

// Takes a scheduled sample. As long as a sender is held back, its samples become less and less frequent.
void SenderRates::take_scheduled_sample(Pair pair, int cycles) {
  Sender& sender = senders_.at(pair);
  sender.next_sample_s = kNever;
  if (sender.in_flight == 0) return;
  sample(pair);
  schedule_sample(pair, sender.held_back ? std::min(2 * cycles, kMostCycles) : 1);
}

double SenderRates::round_trip_s(Pair pair) const {
  return std::max(environment_.round_trip_s(pair), kShortestRoundTrip_s);
}

}  // namespace fomoe::sim
