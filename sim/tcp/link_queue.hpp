// The queue of a link: first in, first out, for data and for the acknowledgements among them.
#pragma once
#include <algorithm>
#include <cstdint>
#include <limits>

namespace fomoe::sim {

class LinkQueue {
 public:
  /// `bytes_per_s` is the link's rate in payload; 0 while it is down. `most_bytes` is the room for what
  /// waits.
  explicit LinkQueue(double bytes_per_s, double most_bytes = std::numeric_limits<double>::infinity())
      : bytes_per_s_(bytes_per_s), most_bytes_(most_bytes) {}

  [[nodiscard]] bool down() const { return !(bytes_per_s_ > 0); }
  /// What waits stays, and leaves at the new rate. (What was told a time by pass() keeps it.)
  void set_rate(double now_s, double bytes_per_s) {
    const double waiting = waiting_bytes(now_s);
    bytes_per_s_ = bytes_per_s;
    free_s_ = down() ? now_s : now_s + waiting / bytes_per_s_;
  }

  /// How many of the bytes that arrive now find no room.
  [[nodiscard]] std::int64_t too_many(double now_s, std::int64_t bytes) const {
    const double over = waiting_bytes(now_s) + static_cast<double>(bytes) - most_bytes_;
    return over > 0 ? std::min(bytes, static_cast<std::int64_t>(over)) : 0;
  }
  [[nodiscard]] double seconds_for(std::int64_t bytes) const {
    return static_cast<double>(bytes) / bytes_per_s_;
  }
  /// Bytes arrive now, 0 for an acknowledgement. Returns when the last one has left. The link must not be
  /// down.
  double pass(double now_s, std::int64_t bytes) {
    free_s_ = std::max(free_s_, now_s) + seconds_for(bytes);
    return free_s_;
  }

 private:
  [[nodiscard]] double waiting_bytes(double now_s) const {
    return free_s_ > now_s ? (free_s_ - now_s) * bytes_per_s_ : 0;
  }

  double bytes_per_s_, most_bytes_;
  double free_s_ = 0;  // when all bytes so far have left
};

}  // namespace fomoe::sim
