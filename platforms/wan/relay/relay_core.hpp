// The relay's decisions without its sockets: when each packet leaves each link, and which are dropped. Time
// comes from outside, so that tests say what time it is.
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
  double segment_bytes = 0;  // of its first segment; wire_bytes for a packet that is one segment
  std::vector<std::byte> content = {};
};

struct LinkCount {
  double bytes = 0;  // sent
  std::uint64_t drops = 0;
};

/// Each link sends in order of arrival at exactly its rate:
///   start = max(arrival, end of the one before), end = start + bytes / rate.
/// It keeps no credit from idle times, so no burst ever exceeds the rate. A run of segments is passed on
/// segment by segment: the next link starts when the first segment is there and ends after the last one is.
class RelayCore {
 public:
  explicit RelayCore(Layout layout);

  /// `now_s` must not be less than in any earlier call.
  void receive(double now_s, Packet packet);
  /// Everything that is due by `now_s`, in the order in which it is due.
  void advance(double now_s, const std::function<void(Packet&&, double due_s)>& deliver);
  /// When advance() next has anything to do.
  [[nodiscard]] std::optional<double> next_s() const;
  [[nodiscard]] const std::vector<LinkCount>& counts() const { return counts_; }

 private:
  struct Flight {
    double at_s = 0;         // its first segment reaches the next link, or all of it the site
    std::uint64_t turn = 0;  // breaks ties in order of arrival
    double whole_s = 0;      // its last segment reaches the next link
    std::size_t stage = 0;   // links passed
    Packet packet;
  };
  static bool later(const Flight& a, const Flight& b) {
    return a.at_s != b.at_s ? a.at_s > b.at_s : a.turn > b.turn;
  }
  void serve(Flight flight);

  Layout layout_;
  std::vector<double> free_s_;  // per link: when it has sent all it holds
  std::vector<LinkCount> counts_;
  std::vector<Flight> flights_;  // a heap, the earliest on top
  std::uint64_t turn_ = 0;
};

}  // namespace fomoe::platforms::wan
