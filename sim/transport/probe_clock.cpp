#include "sim/transport/probe_clock.hpp"

#include "costmodel/inputs/network_model.hpp"

namespace fomoe::sim {

namespace {

constexpr double kShortest = 1.5, kRounding_s = 1e-9;

}  // namespace

bool ProbeClock::silent(const Sender& sender, Pair pair) const {
  return sender.in_flight == 0 && environment_.now() > sender.ended_s + environment_.round_trip_s(pair);
}

void ProbeClock::flow_began(Pair pair) {
  const auto [found, is_new] = senders_.try_emplace(pair);
  Sender& sender = found->second;
  if (is_new) sender.known_s = -kSetUp_round_trips * environment_.round_trip_s(pair);
  if (silent(sender, pair)) compare_round_trips(pair, sender);
  ++sender.in_flight;
  wait(pair);
}

void ProbeClock::flow_ended(Pair pair) {
  Sender& sender = senders_.at(pair);
  --sender.in_flight;
  sender.ended_s = environment_.now();
}

void ProbeClock::compare_round_trips(Pair pair, Sender& sender) {
  if (sender.probing || due_in_s(sender) <= 0) return;
  // The estimate dates from the receiver's message that it was ready, half a round trip before the first
  // byte.
  if (environment_.draw(pair, sender.draws++) * ++sender.undisturbed < kShortest)
    sender.known_s = environment_.now() - environment_.round_trip_s(pair) / 2;
}

double ProbeClock::due_in_s(const Sender& sender) const {
  return sender.known_s + costmodel::kBbrProbeEvery_s - environment_.now();
}

void ProbeClock::wait(Pair pair) {
  Sender& sender = senders_.at(pair);
  if (sender.timed || sender.probing) return;
  sender.timed = true;
  const double due_in_s = this->due_in_s(sender);
  environment_.after(due_in_s > 0 ? due_in_s : environment_.round_trip_s(pair), [this, pair] {
    Sender& waited = senders_.at(pair);
    waited.timed = false;
    if (silent(waited, pair)) return;
    this->due_in_s(waited) > kRounding_s ? wait(pair) : probe(pair);
  });
}

void ProbeClock::probe(Pair pair) {
  senders_.at(pair).probing = true;
  environment_.set_open(pair, false);
  environment_.after(costmodel::bbr_probe_s(environment_.round_trip_s(pair)), [this, pair] {
    environment_.set_open(pair, true);
    Sender& rested = senders_.at(pair);
    rested.probing = false;
    rested.known_s = environment_.now();
    rested.undisturbed = 0;
    if (rested.in_flight > 0) wait(pair);
  });
}

}  // namespace fomoe::sim
