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

namespace {

/// TCP Reno (RFC 5681): a segment more in each round trip, half the window after a loss.
class Reno : public LossBased {
 public:
  using LossBased::LossBased;
  void acknowledged(const Ack& ack) override {
    if (!may_grow(ack)) return;
    window_ += in_slow_start() ? ack.bytes : segment_ * ack.bytes / window_;
  }
  void lost(double /*now_s*/) override { window_ = threshold_ = std::max(window_ / 2, 2 * segment_); }
};

}  // namespace

std::unique_ptr<CongestionWindow> make_reno(double first_window_bytes, bool idle_restart,
                                            double segment_bytes) {
  return std::make_unique<Reno>(first_window_bytes, idle_restart, segment_bytes);
}

std::unique_ptr<CongestionWindow> make_congestion_window(const costmodel::NetworkModel& network,
                                                         double round_trip_s, std::function<double()> draw) {
  const double first = network.initial_window_bytes.value();
  switch (network.congestion_control) {
    case costmodel::CongestionControl::reno:
      return make_reno(first, network.idle_restart, network.segment_bytes);
    case costmodel::CongestionControl::cubic:
      return make_cubic(first, network.idle_restart, network.segment_bytes);
    case costmodel::CongestionControl::bbr:
      return make_bbr(first, round_trip_s, std::move(draw), network.segment_bytes);
  }
  return nullptr;
}

}  // namespace fomoe::sim
