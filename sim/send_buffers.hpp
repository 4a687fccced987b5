// What senders' kernels take off their hands before it has arrived, and in which order it goes out.
#pragma once
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <utility>
#include <vector>

#include "costmodel/plan.hpp"

namespace fomoe::sim {

/// One direction of a connection for each ordered pair of nodes.
class SendBuffers {
 public:
  using Pair = std::pair<costmodel::NodeId, costmodel::NodeId>;
  using Callback = std::function<void()>;
  struct Surroundings {
    std::function<void(double delay_s, Callback)> after;
    std::function<void(Pair, std::int64_t bytes, Callback ended)> fly;  // one at a time
    std::function<double(Pair)> landed_bytes;                           // of the one that flies, so far
    std::function<double(Pair)> fastest_bytes_per_s;                    // that any of them is
    std::function<double(Pair)> size_bytes;                             // of the buffer; may grow
  };
  explicit SendBuffers(Surroundings surroundings) : around_(std::move(surroundings)) {}

  /// A node wishes to send so many bytes; that has ended for it when no more than the buffer holds has yet to
  /// arrive. True: at once. False: `taken` will say so.
  bool hand_over(Pair pair, std::int64_t bytes, Callback taken);
  /// They begin to move, when all that began before has arrived.
  void send(Pair pair, std::int64_t bytes, Callback arrived);
  /// Of the message that moves, what has arrived.
  [[nodiscard]] double landed_bytes(Pair pair) const;
  /// As new. Only where nothing is left to happen.
  void restart() { connections_.clear(); }

 private:
  struct Message {
    std::int64_t bytes = 0;
    Callback arrived;
  };
  struct Wait {
    double end_bytes = 0;   // handed over, up to what is waited for
    double seen_bytes = 0;  // arrived, when it was looked at last
    double pause_s = 0;
    Callback taken;
  };
  struct Connection {
    double handed_over_bytes = 0;
    double arrived_bytes = 0;  // of messages that are there
    std::deque<Message> messages;
    std::vector<Wait> for_first_byte;  // nothing moves yet
  };
  [[nodiscard]] double arrived_bytes(Pair pair) const;
  [[nodiscard]] double too_many_bytes(Pair pair, double end_bytes) const;
  void look_later(Pair pair, Wait wait);
  void send_first(Pair pair);

  Surroundings around_;
  std::map<Pair, Connection> connections_;
};

}  // namespace fomoe::sim
