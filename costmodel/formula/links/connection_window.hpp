// The window of a connection of a real host over links that it has to itself, as the closed form counts it:
// round trip by round trip, without queues and without chance. sim/tcp has the connections themselves.
#pragma once
#include "costmodel/inputs/network_model.hpp"

namespace fomoe::costmodel {

class ConnectionWindow {
 public:
  /// A connection that has carried nothing. Its receive buffer and losses allow it `most_bytes` in flight,
  /// and its send buffer what network.send_buffer_bytes does, if it counts. Requires
  /// network.initial_window_bytes.
  ConnectionWindow(const NetworkModel& network, double round_trip_s, double most_bytes,
                   bool send_buffer_counts = true);

  /// Sends that many bytes, with what links leave to it. Returns the seconds until the last byte leaves: a
  /// round trip for each full window that is smaller than what fits on the way, and the rest ÷ rate. The
  /// window doubles in each round trip, up to what the buffers allow.
  double send_s(double bytes, double rate_bytes_per_s);
  /// Nothing is in flight for that time. An idle connection halves its window for each retransmission
  /// time-out, which is the round trip and 0.2 s, down to the first window (RFC 2861; tcp_cwnd_restart() in
  /// net/ipv4/tcp_output.c).
  void pause(double seconds);

 private:
  [[nodiscard]] double most_in_flight(double bytes, double rate_bytes_per_s) const;

  bool idle_restart_;
  double send_buffer_bytes_, segment_bytes_;
  double round_trip_s_, most_bytes_, first_bytes_, window_bytes_;
};

}  // namespace fomoe::costmodel
