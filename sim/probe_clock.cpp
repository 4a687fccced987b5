#include "sim/probe_clock.hpp"

#include "costmodel/network_model.hpp"

namespace fomoe::sim {

bool ProbeClock::silent(const Sender& sender, Pair pair) const {
  return sender.flying == 0 && around_.now() > sender.ended_s + around_.round_trip_s(pair);
}

void ProbeClock::flow_began(Pair pair) {
  ++senders_[pair].flying;
  wait(pair);
}

void ProbeClock::flow_ended(Pair pair) {
  Sender& sender = senders_.at(pair);
  --sender.flying;
  sender.ended_s = around_.now();
}

void ProbeClock::wait(Pair pair) {
  Sender& sender = senders_.at(pair);
  if (sender.timed || sender.probing) return;
  sender.timed = true;
  const double due_in_s = sender.seen_s + costmodel::kBbrProbeEvery_s - around_.now();
  around_.after(due_in_s > 0 ? due_in_s : around_.round_trip_s(pair), [this, pair] {
    Sender& waited = senders_.at(pair);
    waited.timed = false;
    if (!silent(waited, pair)) probe(pair);
  });
}

void ProbeClock::probe(Pair pair) {
  senders_.at(pair).probing = true;
  around_.set_open(pair, false);
  around_.after(costmodel::bbr_probe_s(around_.round_trip_s(pair)), [this, pair] {
    around_.set_open(pair, true);
    Sender& rested = senders_.at(pair);
    rested.probing = false;
    rested.seen_s = around_.now();
    if (rested.flying > 0) wait(pair);
  });
}

}  // namespace fomoe::sim
