// The logic of the relay without its sockets: when each packet leaves each link, and which packets are
// dropped. The caller passes the time, so that tests can choose it.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "platforms/wan/network/layout.hpp"

namespace fomoe::platforms::wan {

struct Packet {
  int from = 0, to = 0;
  double wire_bytes = 0;
  double segment_bytes = 0;  // bytes of the first segment; equal to wire_bytes if there is only one
  std::vector<std::byte> content = {};
};

struct LinkCount {
  double bytes = 0;         // bytes sent
  std::uint64_t drops = 0;  // segments that found no room
};

/// Each link sends packets in order of arrival at exactly its rate:
///   start = max(arrival, end of the previous packet), end = start + bytes / rate.
/// A link keeps no credit from idle times, so no burst ever exceeds its rate. A run of segments passes on
/// segment by segment: the next link starts when the first segment has arrived, and ends after the last one
/// has arrived. Of a run that finds too little room in a queue, the first segments that fit are kept, as a
/// real queue would keep them.
class RelayCore {
 public:
  explicit RelayCore(Layout layout);

  /// Accepts a packet at its sender's uplink. `now_s` must not be less than in any earlier call.
  void receive(double now_s, Packet packet);
  /// Calls `deliver` for every packet that is due by `now_s`, in the order of their due times.
  void advance(double now_s, const std::function<void(Packet&&, double due_s)>& deliver);
  /// The next time at which advance() has anything to do; nullopt if no packet is in flight.
  [[nodiscard]] std::optional<double> next_s() const;
  [[nodiscard]] const std::vector<LinkCount>& counts() const { return counts_; }

 private:
  struct Flight {
    double at_s = 0;         // time when its first segment reaches the next link, or all of it the site
    std::uint64_t turn = 0;  // breaks ties in order of arrival
    double whole_s = 0;      // time when its last segment reaches the next link
    std::size_t stage = 0;   // number of links passed
    Packet packet;
  };
  static bool later(const Flight& a, const Flight& b) {
    return a.at_s != b.at_s ? a.at_s > b.at_s : a.turn > b.turn;
  }
  void serve(Flight flight);

  Layout layout_;
  std::vector<double> free_s_;  // [link]: time when it will have sent all its packets
  std::vector<LinkCount> counts_;
  std::vector<Flight> flights_;  // a heap with the earliest on top
  std::uint64_t turn_ = 0;
};

}  // namespace fomoe::platforms::wan
