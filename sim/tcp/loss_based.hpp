// What Reno and CUBIC have in common: a window that doubles in each round trip up to a threshold, and that
// shrinks after silence.
#pragma once
#include <limits>

#include "sim/tcp/congestion_window.hpp"

namespace fomoe::sim {

class LossBased : public CongestionWindow {
 public:
  LossBased(double first_window_bytes, bool idle_restart, double segment_bytes)
      : CongestionWindow(first_window_bytes, segment_bytes),
        first_window_(window_),
        idle_restart_(idle_restart) {}
  void acknowledged(const Ack& ack) final;
  void lost(const Ack& ack) final;
  void recovered() final { window_ = threshold_; }
  void sends_again(double now_s, double idle_s, double timeout_s, bool sender_limited) override;
  [[nodiscard]] double pace_bytes_per_s(double smoothed_s) const override;

 protected:
  [[nodiscard]] bool in_slow_start() const { return window_ < threshold_; }
  /// Whether the window may grow: only what was used may (tcp_is_cwnd_limited() in include/net/tcp.h).
  [[nodiscard]] bool may_grow(const Ack& ack) const {
    return ack.window_limited || (in_slow_start() && window_ < 2 * ack.largest_flight);
  }
  /// Bytes have arrived, and no losses are repaired.
  virtual void grow(const Ack& ack) = 0;
  /// The window after the loss that was found now, in bytes.
  virtual double reduced() = 0;
  double threshold_ = std::numeric_limits<double>::infinity();  // slow start threshold

 private:
  void repair(const Ack& ack);

  double first_window_;
  bool idle_restart_;
  double before_loss_ = 0, sent_at_loss_ = 0,
         repaired_ = 0;  // window, position, bytes that have arrived since
};

}  // namespace fomoe::sim
