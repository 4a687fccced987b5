// One TCP connection in one direction: the socket's send buffer, what is in flight, and what the receiver
// has. It knows no links; tcp_network.hpp carries its bursts.
#pragma once
#include <cstdint>
#include <deque>
#include <memory>

#include "sim/tcp/congestion_window.hpp"
#include "sim/tcp/recovery.hpp"

namespace fomoe::sim {

/// Limits of the buffers of a host's sockets, in bytes.
struct SocketBuffers {
  double send = std::numeric_limits<double>::infinity();     // net.ipv4.tcp_wmem, the third number
  double receive = std::numeric_limits<double>::infinity();  // net.ipv4.tcp_rmem, the third number
};

/// Who hears of a part of a message that a connection carries.
class PartEvents {
 public:
  virtual ~PartEvents() = default;
  virtual void written(double at_s) = 0;    // its last byte is in the send buffer
  virtual void delivered(double at_s) = 0;  // the receiver has its last byte
};

/// Payload that travels together, and then its acknowledgement.
struct Burst {
  std::uint32_t connection = 0;
  bool acknowledgement = false, sender_limited = false;
  bool repeats = false;    // lost bytes are among its bytes
  std::uint16_t hop = 0;   // links of its way that it has passed
  std::int64_t bytes = 0;  // that arrive
  std::int64_t lost = 0;   // that do not
  double sent_s = 0;
  double spread_s = 0;           // from the arrival of its first byte to that of its last one
  double first_sent_s = 0;       // when the burst was sent that was acknowledged last, before it was sent
  double acknowledged = 0;       // bytes acknowledged before it was sent
  double acknowledged_at_s = 0;  // when the last of them was
};

class Connection {
 public:
  /// Opening the connection has measured the round trip without queues.
  Connection(std::unique_ptr<CongestionWindow> control, SocketBuffers buffers, double round_trip_s);

  /// Queues a part of a message behind those before it.
  void put(double now_s, std::int64_t bytes, PartEvents& events);
  /// Sends a message without payload, which takes no time but ends a silence.
  void announce(double now_s);
  /// The bytes that may leave now as one burst; 0 if there is nothing to send, or the window or the pace
  /// does not allow it. Sets `not_before_s` if the pace is the reason.
  std::int64_t ready_bytes(double now_s, double& not_before_s);
  /// Sends a burst of that many bytes.
  Burst send(double now_s, std::int64_t bytes);
  /// Bytes arrive at the receiver.
  void deliver(double now_s, std::int64_t bytes);
  /// The acknowledgement of a burst arrives.
  void acknowledge(double now_s, const Burst& burst);

  [[nodiscard]] double burst_bytes() const {
    return costmodel::burst_bytes(control_->pace_bytes_per_s(smoothed_s_), segment());
  }
  [[nodiscard]] bool idle() const { return parts_.empty(); }
  double in_host_bytes = 0;  // of the host's queue, for TcpNetwork
  double pump_at_s = -1;     // when it will try to send again; -1: not planned

 private:
  struct Part {
    PartEvents* events;
    std::int64_t unwritten, undelivered;
  };
  void end_silence(double now_s);
  void write(double now_s);
  void expand_buffer();
  void note_window(bool limited);
  void update_round_trip(double sample_s);
  [[nodiscard]] double segment() const { return control_->segment_bytes(); }
  [[nodiscard]] double in_flight() const { return sent_ - acknowledged_ - lost_; }
  /// Memory that a byte of payload takes in the send buffer.
  [[nodiscard]] double memory_per_byte() const;
  [[nodiscard]] double timeout_s() const;

  std::unique_ptr<CongestionWindow> control_;
  SocketBuffers buffers_;
  std::deque<Part> parts_;                                       // that the receiver does not have
  std::size_t writing_ = 0;                                      // the first of them that is not all written
  std::int64_t unsent_ = 0;                                      // in the send buffer
  double written_ = 0, sent_ = 0, acknowledged_ = 0, lost_ = 0;  // bytes so far; sent_ counts repetitions
  double buffer_ = 0;                                            // the present size of the send buffer
  bool buffer_full_ = false;
  double smoothed_s_, least_s_;  // round trips
  double deviation_s_, variation_s_,
      most_deviation_s_;      // four times their deviation: now, of the time-out, in this round trip
  double variation_end_ = 0;  // the round trip ends when the bytes sent so far are accounted for
  double last_sent_s_ = -1, first_sent_s_ = 0, acknowledged_at_s_ = 0;
  double idle_since_s_ = -1;              // the last silence that congestion control was told of
  std::deque<double> in_flight_since_s_;  // when each burst in flight was sent
  double next_burst_s_ = 0;               // by the pace
  double sender_limited_until_ = 0;       // acknowledged bytes; 0: the sender has enough to send
  Recovery recovery_;
  // The use of the window (tcp_cwnd_validate() in net/ipv4/tcp_output.c).
  bool window_limited_ = false;
  double largest_flight_ = 0, usage_end_ = 0;
};

}  // namespace fomoe::sim
