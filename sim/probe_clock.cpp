#include "sim/probe_clock.hpp"

#include <algorithm>

#include "costmodel/network_model.hpp"

namespace fomoe::sim {

using costmodel::kBbrProbeEvery_s;

bool ProbeClock::silent(const Sender& sender, Pair pair) const {
  return sender.flying == 0 &&
         (sender.ended_s < 0 || around_.now() > sender.ended_s + around_.round_trip_s(pair));
}

void ProbeClock::flow_began(Pair pair) {
  Sender& sender = senders_[pair];
  const bool due = around_.now() >= sender.seen_s + kBbrProbeEvery_s;
  if (sender.seen_s < 0 || (due && silent(sender, pair))) sender.seen_s = around_.now();
  ++sender.flying;
  count_down(pair);
}

void ProbeClock::flow_ended(Pair pair) {
  Sender& sender = senders_.at(pair);
  --sender.flying;
  sender.ended_s = around_.now();
}

void ProbeClock::count_down(Pair pair) {
  Sender& sender = senders_.at(pair);
  if (sender.timed || sender.probing) return;
  sender.timed = true;
  around_.after(std::max(0.0, sender.seen_s + kBbrProbeEvery_s - around_.now()), [this, pair] {
    senders_.at(pair).timed = false;
    come_due(pair);
  });
}

void ProbeClock::come_due(Pair pair) {
  Sender& sender = senders_.at(pair);
  if (silent(sender, pair)) return;
  // It may have been silent since the timer was set, and have learnt the round trip then.
  if (around_.now() < sender.seen_s + kBbrProbeEvery_s * (1 - 1e-9)) return count_down(pair);
  sender.probing = true;
  around_.set_open(pair, false);
  around_.after(costmodel::bbr_probe_s(around_.round_trip_s(pair)), [this, pair] {
    around_.set_open(pair, true);
    Sender& rested = senders_.at(pair);
    rested.probing = false;
    rested.seen_s = around_.now();
    if (!silent(rested, pair)) count_down(pair);
  });
}

}  // namespace fomoe::sim
