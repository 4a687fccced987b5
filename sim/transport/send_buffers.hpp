// Models the TCP send buffers of the senders' kernels: when a send ends for its sender, and in which order
// messages leave.
#pragma once
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <utility>

#include "costmodel/plan/plan.hpp"

namespace fomoe::sim {

struct Departure;  // defined in sim/engine/engine_simgrid.hpp

/// Each ordered pair of nodes is one direction of a connection, whose messages leave one after another. A
/// send has ended for its sender when the bytes of the pair that have not arrived fit into the send buffer.
class SendBuffers {
 public:
  using Pair = std::pair<costmodel::NodeId, costmodel::NodeId>;
  using Callback = std::function<void()>;
  struct Environment {
    std::function<double()> now;
    std::function<void(double delay_s, Callback)> after;
    /// Starts the pair's only flow. The first bytes may be on their way already.
    std::function<void(Pair, std::int64_t bytes, std::shared_ptr<Departure>, Callback ended)> begin_flow;
    std::function<double(Pair)> delivered_bytes;      // bytes of that flow that have arrived so far
    std::function<double(Pair)> fastest_bytes_per_s;  // the greatest rate that the flow could have now
    std::function<double(Pair)> size_bytes;           // size of the send buffer; may grow
  };
  explicit SendBuffers(Environment environment) : environment_(std::move(environment)) {}

  /// Records a node's wish to send `bytes`. Returns true if the buffer holds them together with all earlier
  /// bytes that have not arrived: then the send has ended for the node. Otherwise send() reports its end
  /// through `taken`.
  bool holds(Pair pair, std::int64_t bytes);
  /// Sends `bytes` (at least 1) when all earlier messages of the pair have arrived. If `taken` is not empty,
  /// it is called once, at the latest before `arrived`.
  void send(Pair pair, std::int64_t bytes, std::shared_ptr<Departure> departure, Callback arrived,
            Callback taken);
  /// Whether a message of the pair is in flight.
  [[nodiscard]] bool busy(Pair pair) const;
  /// Bytes of the message in flight that have arrived.
  [[nodiscard]] double delivered_bytes(Pair pair) const;
  /// Resets the state to that of a new object. May be called only when no event is pending.
  void restart() { connections_.clear(); }

 private:
  struct Message {
    std::int64_t bytes = 0;
    double end_bytes = 0;  // bytes sent on the connection up to the end of this message
    std::shared_ptr<Departure> departure;
    Callback arrived, taken;
  };
  struct Connection {
    double wished_bytes = 0, sent_bytes = 0;
    double arrived_bytes = 0;  // sum over the messages that have arrived completely
    std::deque<Message> messages;
  };
  struct Observation {
    double at_s = 0, arrived_bytes = 0;
  };
  [[nodiscard]] double arrived_bytes(Pair pair) const;
  void wait(Pair pair, double end_bytes, Observation last);
  void send_first(Pair pair);

  Environment environment_;
  std::map<Pair, Connection> connections_;
};

}  // namespace fomoe::sim
