#include "sim/sender_rates.hpp"

#include <algorithm>
#include <limits>

#include "costmodel/network_model.hpp"

namespace fomoe::sim {

namespace {

// Less than this share of its limit: links hold the sender back.
constexpr double kHeldBack = 0.97;
// Shorter samples say nothing, and shorter round trips would make a clock of every link.
constexpr double kShortestSample_round_trips = 0.01, kShortestRoundTrip_s = 1e-3;

}  // namespace

SenderRates::Sender& SenderRates::sender(Pair pair) {
  const auto [found, is_new] = senders_.try_emplace(pair);
  if (is_new) found->second.limit_bytes_per_s = std::numeric_limits<double>::infinity();
  return found->second;
}

void SenderRates::restart() {
  for (const auto& [pair, sender] : senders_)
    around_.limit(pair, std::numeric_limits<double>::infinity());
  senders_.clear();
}

void SenderRates::begin_sample(Pair pair, Sender& sender) const {
  sender.sampled_s = around_.now();
  sender.sampled_bytes = around_.delivered_bytes(pair);
}

void SenderRates::flow_began(Pair pair) {
  sample_those_beside(pair);
  Sender& began = sender(pair);
  if (began.flying++ > 0) return;
  const auto [from, to] = around_.ports(pair);
  sending_[from].insert(pair);
  receiving_[to].insert(pair);
  begin_sample(pair, began);
  wait_for_next_raise(pair);
}

void SenderRates::flow_ended(Pair pair) {
  sample_those_beside(pair);
  if (--sender(pair).flying > 0) return;
  const auto [from, to] = around_.ports(pair);
  sending_[from].erase(pair);
  receiving_[to].erase(pair);
}

void SenderRates::paused(Pair pair, bool is) {
  Sender& one = sender(pair);
  if (one.flying > 0) sample_those_beside(pair);
  one.paused = is;
  if (!is) begin_sample(pair, one);
}

void SenderRates::sample_those_beside(Pair pair) {
  const auto [from, to] = around_.ports(pair);
  for (const Pair& beside : sending_[from]) sample(beside);
  for (const Pair& beside : receiving_[to]) sample(beside);
}

void SenderRates::sample(Pair pair) {
  Sender& one = sender(pair);
  const double round_trip_s = std::max(around_.round_trip_s(pair), kShortestRoundTrip_s);
  const double passed_s = around_.now() - one.sampled_s;
  if (one.paused || passed_s < kShortestSample_round_trips * round_trip_s) return;
  const double bytes_per_s = (around_.delivered_bytes(pair) - one.sampled_bytes) / passed_s;
  begin_sample(pair, one);
  one.active_s += passed_s;
  while (!one.most_first.empty() && one.most_first.back().bytes_per_s <= bytes_per_s) one.most_first.pop_back();
  one.most_first.push_back({one.active_s, bytes_per_s});
  while (one.most_first.front().until_active_s < one.active_s - costmodel::kBbrMemory_round_trips * round_trip_s)
    one.most_first.pop_front();
  if (one.active_s < costmodel::kBbrStartup_round_trips * round_trip_s) return;

  const double before = one.limit_bytes_per_s;
  one.held_back = bytes_per_s < kHeldBack * one.limit_bytes_per_s;
  if (one.held_back) {
    one.limit_bytes_per_s = costmodel::kBbrRaise * one.most_first.front().bytes_per_s;
    one.next_raise_s = around_.now() + (costmodel::kBbrCycle_round_trips - 1) * round_trip_s;
  } else if (around_.now() >= one.next_raise_s - 1e-9 * round_trip_s) {
    one.limit_bytes_per_s *= costmodel::kBbrRaise;
    one.next_raise_s =
        around_.now() + (acknowledged_late(pair) ? costmodel::kBbrCycle_round_trips : 1) * round_trip_s;
  }
  if (one.limit_bytes_per_s != before) around_.limit(pair, one.limit_bytes_per_s);
  wait_for_next_raise(pair);
}

// A raise ends when a quarter more than the path holds is under way, which, as the sender learns meanwhile what it
// holds, is so only where acknowledgements wait behind what the receiver sends.
bool SenderRates::acknowledged_late(Pair pair) const {
  const auto own = sending_.find(around_.ports(pair).second);
  return own != sending_.end() && std::any_of(own->second.begin(), own->second.end(), [&](Pair beside) {
           return senders_.at(beside).held_back;
         });
}

void SenderRates::wait_for_next_raise(Pair pair) {
  Sender& one = sender(pair);
  // A limit above what the links carry limits nothing; it may fall when others begin or end.
  if (one.timed || one.limit_bytes_per_s >= around_.alone_bytes_per_s(pair)) return;
  one.timed = true;
  const double round_trip_s = std::max(around_.round_trip_s(pair), kShortestRoundTrip_s);
  around_.after(std::max(round_trip_s, one.next_raise_s - around_.now()), [this, pair] {
    Sender& waited = sender(pair);
    waited.timed = false;
    if (waited.flying == 0) return;
    sample(pair);
    wait_for_next_raise(pair);
  });
}

}  // namespace fomoe::sim
