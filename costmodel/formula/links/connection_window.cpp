#include "costmodel/formula/links/connection_window.hpp"

#include <algorithm>
#include <cmath>

#include "costmodel/inputs/segments.hpp"

namespace fomoe::costmodel {

ConnectionWindow::ConnectionWindow(const NetworkModel& network, double round_trip_s, double most_bytes,
                                   bool send_buffer_counts)
    : idle_restart_(network.idle_restart && network.congestion_control != CongestionControl::bbr),
      send_buffer_bytes_(send_buffer_counts ? network.send_buffer_bytes.value_or(platforms::kUnlimited)
                                            : platforms::kUnlimited),
      segment_bytes_(network.segment_bytes),
      round_trip_s_(round_trip_s),
      most_bytes_(most_bytes),
      first_bytes_(std::min(network.initial_window_bytes.value(), most_bytes)),
      window_bytes_(first_bytes_) {}

// An application fills the send buffer, and again when a third of it is free (kBufferInFlight). Slow start
// paces at two windows per round trip, and a window is up to twice of what is in flight.
double ConnectionWindow::most_in_flight(double bytes, double rate_bytes_per_s) const {
  constexpr double kPace = 4;
  if (send_buffer_bytes_ == platforms::kUnlimited) return most_bytes_;
  const double pace = kPace * std::min(rate_bytes_per_s, send_buffer_bytes_ / round_trip_s_);
  const double room = send_buffer_bytes_ / memory_per_byte(burst_bytes(pace, segment_bytes_));
  return bytes <= room ? most_bytes_ : std::min(most_bytes_, kBufferInFlight * room);
}

double ConnectionWindow::send_s(double bytes, double rate_bytes_per_s) {
  const double on_the_way = rate_bytes_per_s * round_trip_s_;
  const double most = most_in_flight(bytes, rate_bytes_per_s);
  double seconds = 0;
  const auto stops = [&] { return bytes > window_bytes_ && window_bytes_ < on_the_way; };
  for (; stops() && window_bytes_ < most; window_bytes_ = std::min(2 * window_bytes_, most)) {
    seconds += round_trip_s_;
    bytes -= window_bytes_;
  }
  if (stops()) {
    const double full = std::ceil(bytes / most) - 1;
    seconds += full * round_trip_s_;
    bytes -= full * most;
  }
  // Only a window that is used up grows, to twice of what is in flight at most.
  window_bytes_ = std::max(window_bytes_, std::min({window_bytes_ + bytes, 2 * on_the_way, most}));
  return seconds + bytes / rate_bytes_per_s;
}

void ConnectionWindow::pause(double seconds) {
  const double timeout_s = round_trip_s_ + kLeastTimeout_s;
  if (!idle_restart_ || seconds <= timeout_s) return;
  window_bytes_ = std::max(std::min(first_bytes_, window_bytes_),
                           window_bytes_ * std::exp2(-std::floor(seconds / timeout_s)));
}

}  // namespace fomoe::costmodel
