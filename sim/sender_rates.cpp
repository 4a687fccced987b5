#include "sim/sender_rates.hpp"

#include <algorithm>

#include "costmodel/network_model.hpp"

namespace fomoe::sim {

namespace {

// Less than this share of its pace: links hold the sender back.
constexpr double kHeldBack = 0.97;
// Rates at the end of the start-ups of 88 connections in traces were 8 % off their site's mean (median).
constexpr double kStartupSpread = 0.15;
// Shorter samples say nothing, and shorter round trips would make a clock of every link.
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
  if (began.flying++ > 0) return;
  const auto [from, to] = around_.ports(pair);
  sending_[from].insert(pair);
  receiving_[to].insert(pair);
  begin_sample(pair, began);
  share_uplink(from);
  look_at(pair, std::max(began.next_raise_s, around_.now() + round_trip_s(pair)));
}

void SenderRates::flow_ended(Pair pair) {
  sample_those_beside(pair);
  if (--senders_.at(pair).flying > 0) return;
  const auto [from, to] = around_.ports(pair);
  sending_[from].erase(pair);
  receiving_[to].erase(pair);
  share_uplink(from);
}

void SenderRates::paused(Pair pair, bool is) {
  Sender& one = senders_.at(pair);
  if (one.flying > 0) sample_those_beside(pair);
  one.paused = is;
  if (!is) begin_sample(pair, one);
  share_uplink(around_.ports(pair).first);
}

void SenderRates::while_links_change(const std::function<void()>& change) {
  for (const auto& [site, pairs] : sending_) sample_all(pairs);
  change();
  for (const auto& [site, pairs] : sending_) share_uplink(site);
}

void SenderRates::sample_those_beside(Pair pair) {
  const auto [from, to] = around_.ports(pair);
  sample_all(sending_[from]);
  sample_all(receiving_[to]);
}

void SenderRates::sample_all(const std::set<Pair>& pairs) {
  for (const Pair& pair : pairs) {
    sample(pair);
    senders_.at(pair).patience = 1;
    look_at(pair, senders_.at(pair).next_raise_s);
  }
}

void SenderRates::sample(Pair pair) {
  Sender& one = senders_.at(pair);
  const double round_trip_s = this->round_trip_s(pair);
  const double passed_s = around_.now() - one.sampled_s;
  if (one.paused || passed_s < kShortestSample_round_trips * round_trip_s) return;
  const double bytes = around_.delivered_bytes(pair) - one.sampled_bytes;
  begin_sample(pair, one);
  if (bytes < 1) return;  // a link is down: nothing is acknowledged, and nothing learnt
  const double bytes_per_s = bytes / passed_s;
  const bool had_started = one.active_s >= costmodel::kBbrStartup_round_trips * round_trip_s;
  one.active_s += passed_s;
  if (one.active_s < costmodel::kBbrStartup_round_trips * round_trip_s) return;
  const double seen = had_started ? bytes_per_s : bytes_per_s * (1 + kStartupSpread * around_.draw(pair));
  while (!one.most_first.empty() && one.most_first.back().bytes_per_s <= seen) one.most_first.pop_back();
  one.most_first.push_back({one.active_s, seen});
  while (one.most_first.front().until_active_s <
         one.active_s - costmodel::kBbrMemory_round_trips * round_trip_s)
    one.most_first.pop_front();

  const double before = one.paces_bytes_per_s;
  one.held_back = bytes_per_s < kHeldBack * one.paces_bytes_per_s;
  if (one.held_back) {
    one.paces_bytes_per_s = costmodel::kBbrRaise * one.most_first.front().bytes_per_s;
    one.next_raise_s = around_.now() + (costmodel::kBbrCycle_round_trips - 1) * round_trip_s;
  } else if (around_.now() >= one.next_raise_s - 1e-9 * round_trip_s) {
    one.paces_bytes_per_s *= costmodel::kBbrRaise;
    one.next_raise_s =
        around_.now() + (acknowledged_late(pair) ? costmodel::kBbrCycle_round_trips : 1) * round_trip_s;
  }
  if (one.paces_bytes_per_s != before) share_uplink(around_.ports(pair).first);
}

// What senders pace goes through one queue, which serves them in proportion:
//   limit = pace · min(1, uplink ÷ sum of paces)
void SenderRates::share_uplink(int site) {
  double sum = 0;
  for (const Pair& pair : sending_[site])
    sum += senders_.at(pair).paused ? 0 : senders_.at(pair).paces_bytes_per_s;
  const double share = sum < kUnlimited ? std::min(1.0, around_.uplink_bytes_per_s(site) / sum) : 1;
  for (const Pair& pair : sending_[site]) {
    Sender& one = senders_.at(pair);
    const double limit = sum < kUnlimited ? one.paces_bytes_per_s * share : kUnlimited;
    if (limit == one.limit_bytes_per_s) continue;
    one.limit_bytes_per_s = limit;
    around_.limit(pair, limit);
  }
}

// A raise ends when a quarter more than the path holds is under way, which, as the sender learns meanwhile
// what it holds, is so only where acknowledgements wait behind what the receiver sends.
bool SenderRates::acknowledged_late(Pair pair) const {
  const auto own = sending_.find(around_.ports(pair).second);
  return own != sending_.end() && std::any_of(own->second.begin(), own->second.end(),
                                              [&](Pair beside) { return senders_.at(beside).held_back; });
}

void SenderRates::look_at(Pair pair, double at_s) {
  Sender& one = senders_.at(pair);
  // A pace above what the uplink carries limits nothing; it may fall when others begin or end.
  if (one.look_s <= at_s || one.paces_bytes_per_s >= around_.uplink_bytes_per_s(around_.ports(pair).first))
    return;
  one.look_s = at_s;
  around_.after(std::max(0.0, at_s - around_.now()), [this, pair, at_s] {
    if (senders_.at(pair).look_s == at_s) look(pair);
  });
}

// Whether one that is held back still is, is looked at more and more seldom: when others leave, it is
// sampled.
void SenderRates::look(Pair pair) {
  Sender& one = senders_.at(pair);
  one.look_s = kNever;
  if (one.flying == 0) return;
  sample(pair);
  one.patience = one.held_back ? 2 * one.patience : 1;
  const double wait_s = one.patience * costmodel::kBbrCycle_round_trips * round_trip_s(pair);
  look_at(pair, one.held_back ? around_.now() + wait_s
                              : std::max(one.next_raise_s, around_.now() + round_trip_s(pair)));
}

double SenderRates::round_trip_s(Pair pair) const {
  return std::max(around_.round_trip_s(pair), kShortestRoundTrip_s);
}

}  // namespace fomoe::sim
