#include "sim/tcp/loss_based.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace fomoe::sim {

// Linux halves the window for each retransmission time-out of silence, down to the first window
// (tcp_cwnd_restart(), RFC 2861). The threshold keeps three quarters of what was reached
// (tcp_current_ssthresh()).
void LossBased::sends_again(double /*now_s*/, double idle_s, double timeout_s, bool /*sender_limited*/) {
  if (!idle_restart_ || idle_s <= timeout_s) return;
  if (std::isfinite(threshold_)) threshold_ = std::max(threshold_, 0.75 * window_);
  const double least = std::min(first_window_, window_);
  window_ = std::max(least, window_ * std::exp2(-std::floor(idle_s / timeout_s)));
}

// tcp_update_pacing_rate() in net/ipv4/tcp_input.c: twice the window per round trip in slow start, 1.2 times
// after it. Without a pacing queue it only sets the size of bursts.
double LossBased::pace_bytes_per_s(double smoothed_s) const {
  return (window_ < threshold_ / 2 ? 2 : 1.2) * window_ / std::max(smoothed_s, 1e-6);
}

void LossBased::acknowledged(const Ack& ack) {
  if (ack.in_recovery) {
    repair(ack);
  } else {
    grow(ack);
  }
}

void LossBased::lost(const Ack& ack) {
  before_loss_ = window_;
  threshold_ = std::max(reduced(), 2 * segment_);
  sent_at_loss_ = ack.sent;
  repaired_ = 0;
}

// Proportional rate reduction (RFC 9937; tcp_cwnd_reduction() in net/ipv4/tcp_input.c): the sender sends a
// share of what arrives, until its flight has the size of the threshold. If more was lost than that, the
// flight grows to the threshold as in slow start. What was sent before the loss and arrives does not prove
// that the repaired part has; only acknowledgements of repeated segments make it grow. Every other segment is
// acknowledged by itself.
void LossBased::repair(const Ack& ack) {
  repaired_ += ack.bytes;
  const double out = ack.sent - sent_at_loss_, room = threshold_ - ack.in_flight();
  double more = threshold_ * repaired_ / before_loss_ - out;
  if (room >= 0) {
    more = std::max(repaired_ - out, ack.bytes);
    if (ack.repeats && ack.lost == 0) more += std::ceil(ack.bytes / (2 * segment_)) * segment_;
    more = std::min(more, room);
  }
  const double least = out == 0 || ack.in_flight() == 0 ? segment_ : 0;
  window_ = ack.in_flight() + std::max(more, least);
}

namespace {

/// TCP Reno (RFC 5681): a segment more in each round trip, half the window after a loss.
class Reno : public LossBased {
 public:
  using LossBased::LossBased;
  void grow(const Ack& ack) override {
    if (!may_grow(ack)) return;
    window_ += in_slow_start() ? ack.bytes : segment_ * ack.bytes / window_;
  }
  double reduced() override { return window_ / 2; }
};

}  // namespace

std::unique_ptr<CongestionWindow> make_reno(double first_window_bytes, bool idle_restart,
                                            double segment_bytes) {
  return std::make_unique<Reno>(first_window_bytes, idle_restart, segment_bytes);
}

std::unique_ptr<CongestionWindow> make_congestion_window(const costmodel::NetworkModel& network,
                                                         double round_trip_s, double opened_s,
                                                         std::function<double()> draw) {
  const double first = network.initial_window_bytes.value();
  switch (network.congestion_control) {
    case costmodel::CongestionControl::reno:
      return make_reno(first, network.idle_restart, network.segment_bytes);
    case costmodel::CongestionControl::cubic:
      return make_cubic(first, network.idle_restart, network.segment_bytes);
    case costmodel::CongestionControl::bbr:
      return make_bbr(first, round_trip_s, opened_s, std::move(draw), network.segment_bytes);
  }
  return nullptr;
}

}  // namespace fomoe::sim
