// BBR version 1 as in Linux (Cardwell et al. 2016, "BBR: congestion-based congestion control";
// net/ipv4/tcp_bbr.c). The pace is a gain times the largest rate of delivery of the last ten round trips, the
// window a gain times that rate times the shortest round trip of the last 10 s.
#include <algorithm>
#include <array>
#include <deque>
#include <utility>

#include "sim/tcp/congestion_window.hpp"

namespace fomoe::sim {
namespace {

constexpr double kHighGain = 2885.0 / 1000, kWindowGain = 2;
constexpr double kPaced = 0.99;  // bbr_pacing_margin_percent
constexpr int kRateRounds = 10;
constexpr double kLeastWindow_segments = 4;
constexpr double kFirstWindow_segments = 10;  // TCP_INIT_CWND
constexpr double kProbeRoundTripEvery_s = 10, kProbeRoundTripFor_s = 0.2;
constexpr std::array<double, 8> kCycle = {1.25, 0.75, 1, 1, 1, 1, 1, 1};

class Bbr : public CongestionWindow {
 public:
  Bbr(double first_window_bytes, double round_trip_s, double opened_s, std::function<double()> draw,
      double segment_bytes)
      : CongestionWindow(first_window_bytes, segment_bytes),
        draw_(std::move(draw)),
        pace_(kHighGain * window_ / std::max(round_trip_s, 1e-3)),
        least_s_(round_trip_s),
        least_at_s_(opened_s) {}

  void acknowledged(const Ack& ack) override {
    update_rate(ack);
    update_aggregation(ack);
    update_cycle(ack);
    if (!full_ && new_round_ && !ack.sender_limited) check_full();
    check_drain(ack);
    update_least_round_trip(ack);
    set_pace();
    set_window(ack);
  }

  void lost(const Ack& /*ack*/) override {
    before_loss_ = window_;
    if (mode_ == Mode::probe_round_trip) before_loss_ = std::max(before_loss_, window_before_);
    begins_recovery_ = true;
  }
  void recovered() override {
    window_ = std::max(window_, before_loss_);
    conserves_ = false;
  }

  void sends_again(double now_s, double /*idle_s*/, double /*timeout_s*/, bool sender_limited) override {
    if (!sender_limited) return;
    idle_restart_ = true;
    epoch_s_ = now_s;
    epoch_acknowledged_ = 0;
    if (mode_ == Mode::probe_rate) pace_ = std::max(kPaced * rate(), 1.0);
    if (mode_ == Mode::probe_round_trip) end_probe_if_due(now_s);
  }

  [[nodiscard]] double pace_bytes_per_s(double /*smoothed_s*/) const override { return pace_; }
  [[nodiscard]] bool paces() const override { return true; }
  // Four segments in flight would make it forget the rate of the path (bbr_update_min_rtt()).
  [[nodiscard]] bool ignores_rates() const override { return mode_ == Mode::probe_round_trip; }
  [[nodiscard]] double buffered_windows() const override { return 3; }  // bbr_sndbuf_expand()

 private:
  enum class Mode { startup, drain, probe_rate, probe_round_trip };

  [[nodiscard]] double rate() const { return rates_.empty() ? 0 : rates_.front().second; }
  /// The window for a gain, with what offload at both ends holds back (bbr_quantization_budget()).
  [[nodiscard]] double window_of(double gain, double more = 0) const {
    return gain * rate() * least_s_ + more + 3 * costmodel::burst_bytes(pace_, segment_);
  }

  void update_rate(const Ack& ack) {
    new_round_ = ack.acknowledged_when_sent >= round_end_;
    if (new_round_) {
      conserves_ = false;
      round_end_ = ack.acknowledged;
      ++rounds_;
    }
    if (!(ack.interval_s > 0) || ack.interval_s < ack.least_s) return;
    const double sample = (ack.acknowledged - ack.acknowledged_when_sent) / ack.interval_s;
    if (ack.sender_limited && sample < rate()) return;
    while (!rates_.empty() && rates_.back().second <= sample) rates_.pop_back();
    rates_.emplace_back(rounds_, sample);
    while (rates_.front().first < rounds_ - kRateRounds) rates_.pop_front();
  }

  /// The largest number of bytes by which acknowledgements were ahead of the rate
  /// (bbr_update_ack_aggregation).
  void update_aggregation(const Ack& ack) {
    if (new_round_ && ++extra_rounds_ >= 5) {
      extra_rounds_ = 0;
      extra_index_ ^= 1;
      extra_[extra_index_] = 0;
    }
    double expected = rate() * (ack.now_s - epoch_s_);
    if (epoch_acknowledged_ <= expected) {
      epoch_acknowledged_ = expected = 0;
      epoch_s_ = ack.now_s;
    }
    epoch_acknowledged_ += ack.bytes;
    extra_[extra_index_] = std::max(extra_[extra_index_], std::min(epoch_acknowledged_ - expected, window_));
  }

  void update_cycle(const Ack& ack) {
    if (mode_ != Mode::probe_rate) return;
    const bool whole = ack.now_s - phase_s_ > least_s_;
    const double flight = ack.in_flight() + ack.bytes, gain = kCycle[phase_];
    bool next = whole;
    if (gain > 1) next = whole && (ack.lost > 0 || flight >= window_of(gain));
    if (gain < 1) next = whole || flight <= window_of(1);
    if (next) {
      phase_ = (phase_ + 1) % kCycle.size();
      phase_s_ = ack.now_s;
    }
  }

  void check_full() {
    if (rate() >= 1.25 * full_rate_) {
      full_rate_ = rate();
      not_grown_ = 0;
    } else if (++not_grown_ >= 3) {
      full_ = true;
    }
  }

  void check_drain(const Ack& ack) {
    if (mode_ == Mode::startup && full_) mode_ = Mode::drain;
    if (mode_ == Mode::drain && ack.in_flight() <= window_of(1)) probe_rate(ack.now_s);
  }

  /// Starts at a random phase, but not with draining.
  void probe_rate(double now_s) {
    mode_ = Mode::probe_rate;
    phase_ = (kCycle.size() - static_cast<std::size_t>(draw_() * 7)) % kCycle.size();
    phase_s_ = now_s;
  }

  void update_least_round_trip(const Ack& ack) {
    const bool expired = ack.now_s > least_at_s_ + kProbeRoundTripEvery_s;
    if (ack.round_trip_s < least_s_ || expired) {
      least_s_ = ack.round_trip_s;
      least_at_s_ = ack.now_s;
    }
    if (expired && !idle_restart_ && mode_ != Mode::probe_round_trip) {
      mode_ = Mode::probe_round_trip;
      window_before_ = window_;
      probe_end_s_ = -1;
    }
    if (mode_ == Mode::probe_round_trip) {
      if (probe_end_s_ < 0 && ack.in_flight() <= kLeastWindow_segments * segment_) {
        probe_end_s_ = ack.now_s + kProbeRoundTripFor_s;
        probe_round_ = false;
        round_end_ = ack.acknowledged;
      } else if (probe_end_s_ >= 0) {
        probe_round_ = probe_round_ || new_round_;
        if (probe_round_) end_probe_if_due(ack.now_s);
      }
    }
    idle_restart_ = false;
  }

  void end_probe_if_due(double now_s) {
    if (probe_end_s_ < 0 || now_s <= probe_end_s_) return;
    least_at_s_ = now_s;
    window_ = std::max(window_, window_before_);
    if (full_)
      probe_rate(now_s);
    else
      mode_ = Mode::startup;
  }

  void set_pace() {
    double gain = 1;
    if (mode_ == Mode::startup) gain = kHighGain;
    if (mode_ == Mode::drain) gain = 1 / kHighGain;
    if (mode_ == Mode::probe_rate) gain = kCycle[phase_];
    const double wanted = kPaced * gain * rate();
    if (full_ || wanted > pace_) pace_ = std::max(wanted, 1.0);
  }

  /// What is lost makes the window smaller. In the first round trip of a recovery, the sender sends what
  /// arrives (bbr_set_cwnd_to_recover_or_restore()).
  [[nodiscard]] bool conserve(const Ack& ack) {
    window_ = std::max(window_ - ack.lost, segment_);
    if (std::exchange(begins_recovery_, false)) {
      conserves_ = true;
      round_end_ = ack.acknowledged;
      window_ = ack.in_flight() + ack.bytes;
    }
    if (conserves_) window_ = std::max({window_, ack.in_flight() + ack.bytes, segment_});
    return conserves_;
  }

  void set_window(const Ack& ack) {
    if (conserve(ack)) {
      if (mode_ == Mode::probe_round_trip) window_ = std::min(window_, kLeastWindow_segments * segment_);
      return;
    }
    constexpr double kMostExtra_s = 0.1;
    const double extra = full_ ? std::min(std::max(extra_[0], extra_[1]), kMostExtra_s * rate()) : 0;
    const double gain = mode_ == Mode::probe_rate         ? kWindowGain
                        : mode_ == Mode::probe_round_trip ? 1
                                                          : kHighGain;
    const double target = window_of(gain, extra);
    if (full_)
      window_ = std::min(window_ + ack.bytes, target);
    else if (window_ < target || ack.acknowledged < kFirstWindow_segments * segment_)
      window_ += ack.bytes;
    window_ = std::max(window_, kLeastWindow_segments * segment_);
    if (mode_ == Mode::probe_round_trip) window_ = std::min(window_, kLeastWindow_segments * segment_);
  }

  std::function<double()> draw_;
  Mode mode_ = Mode::startup;
  double pace_;
  std::deque<std::pair<std::int64_t, double>>
      rates_;  // (round, rate), rates falling: the front is the largest
  std::int64_t rounds_ = 0;
  double round_end_ = 0;  // a round ends when a burst is acknowledged that was sent after so many bytes
  bool new_round_ = false;
  double full_rate_ = 0;
  int not_grown_ = 0;
  bool full_ = false;  // startup has found the rate
  std::size_t phase_ = 0;
  double phase_s_ = 0;
  bool conserves_ = false, begins_recovery_ = false;
  double before_loss_ = 0;       // the window before the recovery
  double least_s_, least_at_s_;  // shortest round trip, and when it was found
  double probe_end_s_ = -1, window_before_ = 0;
  // A connection that begins to send has been idle: what it knows of its round trip is not too old.
  bool probe_round_ = false, idle_restart_ = true;
  std::array<double, 2> extra_{};
  std::size_t extra_index_ = 0;
  int extra_rounds_ = 0;
  double epoch_s_ = 0, epoch_acknowledged_ = 0;
};

}  // namespace

std::unique_ptr<CongestionWindow> make_bbr(double first_window_bytes, double round_trip_s, double opened_s,
                                           std::function<double()> draw, double segment_bytes) {
  return std::make_unique<Bbr>(first_window_bytes, round_trip_s, opened_s, std::move(draw), segment_bytes);
}

}  // namespace fomoe::sim
