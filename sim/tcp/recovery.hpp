// Loss recovery of a connection (RFC 6675; tcp_fastretrans_alert() in net/ipv4/tcp_input.c): lost bytes are
// repeated before anything new is sent, and the recovery lasts until all bytes that were sent before it have
// arrived.
#pragma once
#include <algorithm>

namespace fomoe::sim {

/// Positions count the bytes that a connection has sent, repeated ones again.
class Recovery {
 public:
  [[nodiscard]] bool active() const { return began_ >= 0; }
  /// Bytes leave. Returns whether lost ones are among them.
  bool sends(double bytes) {
    const bool repeats = to_repeat_ > 0;
    to_repeat_ = std::max(0.0, to_repeat_ - bytes);
    return repeats;
  }
  /// Bytes are found to be lost. `repeated`: they were sent together with repeated ones. `accounted` is the
  /// position up to which it is known what has arrived, `sent` that of the sender. Returns whether a recovery
  /// begins.
  bool lost(double bytes, bool repeated, double accounted, double sent) {
    if (bytes <= 0) return false;
    to_repeat_ += bytes;
    if (!active()) return begin(sent, sent + to_repeat_);
    (repeated || accounted <= began_ ? end_ : end_of_next_) = sent + to_repeat_;
    return false;
  }
  /// Returns whether the recovery is over.
  bool ends(double accounted) {
    if (!active() || accounted < end_) return false;
    began_ = -1;
    return true;
  }
  /// Begins the next recovery if bytes that were sent first during the last one were lost, and are not yet
  /// repaired.
  bool next(double accounted, double sent) { return accounted < end_of_next_ && begin(sent, end_of_next_); }

 private:
  bool begin(double sent, double end) {
    began_ = sent;
    end_ = end;
    end_of_next_ = -1;
    return true;
  }

  double to_repeat_ = 0;          // bytes that are lost and have not been sent again
  double began_ = -1, end_ = -1;  // positions; -1: no recovery
  double end_of_next_ = -1;
};

}  // namespace fomoe::sim
