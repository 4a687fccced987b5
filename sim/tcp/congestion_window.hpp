// What a connection's congestion control is told, and what it decides: the window and the pace.
#pragma once
#include <algorithm>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>

#include "costmodel/inputs/network_model.hpp"
#include "costmodel/inputs/segments.hpp"

namespace fomoe::sim {

using costmodel::kSegment_bytes;

/// An acknowledgement of one burst. Bytes are payload, times are simulated seconds.
struct Ack {
  double now_s = 0;
  double bytes = 0;         // that arrived
  double spread_s = 0;      // since the acknowledgement of its first segments
  double round_trip_s = 0;  // of its first segments
  double acknowledged = 0;  // all bytes so far that have arrived, with these
  double acknowledged_when_sent = 0;
  double lost = 0;        // bytes that are now known to be lost
  bool repeats = false;   // lost bytes are among those of the burst
  double accounted = 0;   // all bytes so far that have arrived, or are known to be lost
  double sent = 0;        // all bytes so far; what is repeated counts again
  double interval_s = 0;  // over which the bytes since then were delivered: the longer one of the sender's
                          // and the receiver's (tcp_rate_gen() in net/ipv4/tcp_rate.c)
  bool sender_limited = false;  // the sender had too little to send when it sent the burst
  bool in_recovery = false;     // not all bytes that were sent before the last loss was found have arrived
  bool window_limited = false;  // the window has limited the sender in the last round trip
  double largest_flight = 0;    // bytes in flight at most in the last round trip
  double smoothed_s = 0, least_s = 0;  // round trips of the connection
  [[nodiscard]] double in_flight() const { return sent - accounted; }
};

class CongestionWindow {
 public:
  /// A window has room for a segment at least.
  CongestionWindow(double first_window_bytes, double segment_bytes)
      : window_(std::max(first_window_bytes, segment_bytes)), segment_(segment_bytes) {}
  virtual ~CongestionWindow() = default;
  virtual void acknowledged(const Ack& ack) = 0;
  /// A recovery begins: a queue was full, or a segment was lost by chance. acknowledged() follows with the
  /// same `ack`.
  virtual void lost(const Ack& ack) = 0;
  /// The recovery is over.
  virtual void recovered() = 0;
  /// The connection sends again after `idle_s` without bytes in flight. `timeout_s` is its retransmission
  /// time-out.
  virtual void sends_again(double now_s, double idle_s, double timeout_s, bool sender_limited) = 0;
  /// Whether the rate at which bytes sent now are delivered says nothing of the path, as if the sender had
  /// too little to send.
  [[nodiscard]] virtual bool ignores_rates() const { return false; }
  /// Bytes per second. `smoothed_s` is the smoothed round trip.
  [[nodiscard]] virtual double pace_bytes_per_s(double smoothed_s) const = 0;
  /// Whether bursts leave at the pace, or at once.
  [[nodiscard]] virtual bool paces() const { return false; }
  /// The number of windows for which a socket has room in its send buffer.
  [[nodiscard]] virtual double buffered_windows() const { return 2; }
  [[nodiscard]] double window_bytes() const { return window_; }
  [[nodiscard]] double segment_bytes() const { return segment_; }

 protected:
  double window_;
  double segment_;  // payload of a full segment
};

/// The scenario's congestion control for a connection that was opened at `opened_s`. `draw` returns
/// pseudorandom numbers in [0, 1). Requires network.initial_window_bytes.
std::unique_ptr<CongestionWindow> make_congestion_window(const costmodel::NetworkModel& network,
                                                         double round_trip_s, double opened_s,
                                                         std::function<double()> draw);

std::unique_ptr<CongestionWindow> make_reno(double first_window_bytes, bool idle_restart,
                                            double segment_bytes = kSegment_bytes);
std::unique_ptr<CongestionWindow> make_cubic(double first_window_bytes, bool idle_restart,
                                             double segment_bytes = kSegment_bytes);
std::unique_ptr<CongestionWindow> make_bbr(double first_window_bytes, double round_trip_s, double opened_s,
                                           std::function<double()> draw,
                                           double segment_bytes = kSegment_bytes);

}  // namespace fomoe::sim
