#include "sim/tcp/hystart.hpp"

#include <algorithm>

namespace fomoe::sim {

bool HyStart::found(const Ack& ack, double window_bytes, double pace_bytes_per_s, double segment_bytes) {
  constexpr double kLeastWindow_segments = 16;
  constexpr double kTrainGap_s = 0.002;
  constexpr int kSamples = 8;
  if (ack.accounted > round_end_) {
    round_start_s_ = last_ack_s_ = ack.now_s;
    round_end_ = ack.sent;
    least_of_round_s_ = std::numeric_limits<double>::infinity();
    samples_ = 0;
  }
  if (window_bytes < kLeastWindow_segments * segment_bytes) return false;
  if (ack.now_s - ack.spread_s - last_ack_s_ <= kTrainGap_s) {
    last_ack_s_ = ack.now_s;
    // What offload holds back, at most 1 ms (hystart_ack_delay()). Half, because the bursts are not paced.
    const double held_s = std::min(0.001, 4 * 65536 / pace_bytes_per_s);
    if (ack.now_s - round_start_s_ > (ack.least_s + held_s) / 2) return true;
  }
  least_of_round_s_ = std::min(least_of_round_s_, ack.round_trip_s);
  if (samples_ < kSamples) {
    ++samples_;
    return false;
  }
  return least_of_round_s_ > ack.least_s + std::clamp(ack.least_s / 8, 0.004, 0.016);
}

}  // namespace fomoe::sim
