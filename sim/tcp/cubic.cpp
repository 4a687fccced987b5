// CUBIC as in Linux (RFC 9438; net/ipv4/tcp_cubic.c). After the last loss at the window W_max, the window
// follows
//   W(t) = W_max + C · segment · (t − K)³,  K = ∛((W_max − W) ÷ (C · segment)),  C = 0.4 per s³
// and never grows by more than half of what is acknowledged.
#include <algorithm>
#include <cmath>

#include "sim/tcp/hystart.hpp"
#include "sim/tcp/loss_based.hpp"

namespace fomoe::sim {
namespace {

constexpr double kC = 0.4, kBeta = 0.7;  // beta: 717 ÷ 1024 in the kernel

class Cubic : public LossBased {
 public:
  using LossBased::LossBased;

  void grow(const Ack& ack) override {
    if (in_slow_start() && !found_ &&
        hystart_.found(ack, window_, pace_bytes_per_s(std::max(ack.smoothed_s, 1e-6)), segment_)) {
      found_ = true;
      threshold_ = window_;
    }
    if (!may_grow(ack)) return;
    if (in_slow_start()) {
      window_ += ack.bytes;
    } else {
      window_ += ack.bytes / segments_for_one_more(ack);
    }
  }

  double reduced() override {
    last_most_ = window_ < last_most_ ? window_ * (1 + kBeta) / 2 : window_;  // fast convergence
    epoch_s_ = -1;
    return window_ * kBeta;
  }

  void sends_again(double now_s, double idle_s, double timeout_s, bool sender_limited) override {
    LossBased::sends_again(now_s, idle_s, timeout_s, sender_limited);
    if (epoch_s_ >= 0) epoch_s_ += idle_s;  // time does not pass while the connection is idle
  }

 private:
  /// How many segments must be acknowledged until the window grows by one (bictcp_update()).
  double segments_for_one_more(const Ack& ack) {
    if (epoch_s_ < 0) {
      epoch_s_ = ack.now_s;
      as_reno_ = window_;
      origin_ = std::max(last_most_, window_);
      k_s_ = std::cbrt((origin_ - window_) / (kC * segment_));
    }
    const double t = ack.now_s + ack.least_s - epoch_s_;
    const double target = origin_ + kC * segment_ * std::pow(t - k_s_, 3);
    double count = target > window_ ? window_ / (target - window_) : 100 * window_ / segment_;
    if (last_most_ == 0) count = std::min(count, 20.0);  // before the first loss
    // Where Reno would be (RFC 9438, section 4.3).
    as_reno_ += 3 * (1 - kBeta) / (1 + kBeta) * segment_ * ack.bytes / window_;
    if (as_reno_ > window_) count = std::min(count, window_ / (as_reno_ - window_));
    return std::max(count, 2.0);
  }

  HyStart hystart_;
  bool found_ = false;    // HyStart has ended slow start; it does so once
  double epoch_s_ = -1;   // when growth after the last loss began; -1: not yet
  double last_most_ = 0;  // the window at the last loss, in bytes
  double origin_ = 0, k_s_ = 0, as_reno_ = 0;
};

}  // namespace

std::unique_ptr<CongestionWindow> make_cubic(double first_window_bytes, bool idle_restart,
                                             double segment_bytes) {
  return std::make_unique<Cubic>(first_window_bytes, idle_restart, segment_bytes);
}

}  // namespace fomoe::sim
