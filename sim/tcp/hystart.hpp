// HyStart: leaves slow start before queues overflow (Ha and Rhee 2011, "Taming the elephants"; as in
// hystart_update() in net/ipv4/tcp_cubic.c).
#pragma once
#include <limits>

#include "sim/tcp/congestion_window.hpp"

namespace fomoe::sim {

class HyStart {
 public:
  /// Whether slow start ends with this acknowledgement: the acknowledgements of a round trip have come in one
  /// train for longer than half of the shortest round trip, or round trips have become longer by an eighth.
  bool found(const Ack& ack, double window_bytes, double pace_bytes_per_s,
             double segment_bytes = kSegment_bytes);

 private:
  double round_end_ = 0;  // the round ends when the bytes that were sent so far are acknowledged
  double round_start_s_ = 0, last_ack_s_ = 0;
  double least_of_round_s_ = std::numeric_limits<double>::infinity();
  int samples_ = 0;
};

}  // namespace fomoe::sim
