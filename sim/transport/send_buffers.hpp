// What senders' kernels take off their hands before it has arrived, and in which order it goes out.
#pragma once
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <utility>

#include "costmodel/plan/plan.hpp"

namespace fomoe::sim {

/// One direction of a connection for each ordered pair of nodes. A send has ended for its sender when no more
/// than the buffer holds has yet to arrive.
class SendBuffers {
 public:
  using Pair = std::pair<costmodel::NodeId, costmodel::NodeId>;
  using Callback = std::function<void()>;
  struct Environment {
    std::function<double()> now;
    std::function<void(double delay_s, Callback)> after;
    std::function<void(Pair, std::int64_t bytes, Callback ended)> fly;  // one at a time
    std::function<double(Pair)> delivered_bytes;                        // of the one that flies, so far
    std::function<double(Pair)> fastest_bytes_per_s;                    // that it could be now
    std::function<double(Pair)> size_bytes;                             // of the buffer; may grow
  };
  explicit SendBuffers(Environment surroundings) : around_(std::move(surroundings)) {}

  /// A node wishes to send so many bytes. Whether the buffer holds them, beside what it has been given
  /// before: then the send has ended for it, else `taken` of send() will say so.
  bool holds(Pair pair, std::int64_t bytes);
  /// They, one at least, begin to move, when all that began before has arrived. `taken`, where not empty, is
  /// called once, at the latest before `arrived`.
  void send(Pair pair, std::int64_t bytes, Callback arrived, Callback taken);
  /// Of the message that moves, what has arrived.
  [[nodiscard]] double delivered_bytes(Pair pair) const;
  /// As new. Only where nothing is left to happen.
  void restart() { connections_.clear(); }

 private:
  struct Message {
    std::int64_t bytes = 0;
    double end_bytes = 0;  // of all that was sent, with it
    Callback arrived, taken;
  };
  struct Connection {
    double wished_bytes = 0, sent_bytes = 0;
    double arrived_bytes = 0;  // of messages that are there
    std::deque<Message> messages;
  };
  struct Look {
    double at_s = 0, arrived_bytes = 0;
  };
  [[nodiscard]] double arrived_bytes(Pair pair) const;
  void wait(Pair pair, double end_bytes, Look last);
  void send_first(Pair pair);

  Environment around_;
  std::map<Pair, Connection> connections_;
};

}  // namespace fomoe::sim
