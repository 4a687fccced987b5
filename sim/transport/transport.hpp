// How messages get from node to node: what happens between a node's wish to send and the arrival of the last
// byte. FluidTransport shares links fairly between ideal hosts; TcpTransport has the connections of real
// ones.
#pragma once
#include <cstdint>
#include <memory>

#include "costmodel/inputs/network_model.hpp"
#include "costmodel/plan/plan.hpp"
#include "sim/fluid/fluid.hpp"

namespace fomoe::sim {

/// A message by the place of its flow: the channel of a transfer, and the flow's index there.
struct FlowRef {
  std::uint32_t channel = 0, flow = 0;
};

/// What the owner of messages is told of them. Callbacks run at the simulated time of the event. The message
/// may be destroyed in arrived(), but not earlier.
class MessageEvents {
 public:
  virtual ~MessageEvents() = default;
  /// Its first byte moves now. `lead_s` is the time, in seconds, for which it was under way before.
  virtual void moving(FlowRef message, double lead_s) = 0;
  /// Its last byte has left the sender. Only called if asks_for_leaving().
  virtual void all_left(FlowRef message) = 0;
  /// The sender may go on.
  virtual void sent(FlowRef message) = 0;
  /// The receiver has its last byte. Never before sent().
  virtual void arrived(FlowRef message) = 0;
  /// Calls `depart` as soon as the message may leave: at once, unless others must leave before it.
  virtual void when_first(FlowRef /*message*/, Fluid::Callback depart) { depart(); }
  [[nodiscard]] virtual bool asks_for_leaving() const { return false; }
  /// Whether nobody wants to hear of the messages any more.
  [[nodiscard]] virtual bool abandoned() const { return false; }
};

class Message {
 public:
  virtual ~Message() = default;
  /// The sender wishes to send, for `overhead_s` already. To be called once.
  virtual void offer(double overhead_s) = 0;
  /// The receiver is ready. To be called once, before or after offer().
  virtual void accept() = 0;
};

class Transport {
 public:
  explicit Transport(const costmodel::NetworkModel& network) : network_(network) {}
  virtual ~Transport() = default;

  [[nodiscard]] virtual Fluid& fluid() = 0;
  /// Fluid::restart(), with connections that have carried nothing. `stream` selects the random draws.
  virtual void restart(double clock_s, bool held, std::uint64_t stream) = 0;
  /// A message of `bytes` > 0. `events` must outlive it.
  virtual std::unique_ptr<Message> message(costmodel::NodeId from, costmodel::NodeId to, std::int64_t bytes,
                                           MessageEvents& events, FlowRef ref) = 0;
  /// Ends all messages without a further event, and closes all connections.
  virtual void cancel_all() = 0;
  /// For how many steps of a collective a node accepts messages before it begins the step.
  [[nodiscard]] virtual int steps_accepted_ahead() const { return 0; }

  [[nodiscard]] double call_overhead_s() const { return network_.call_overhead_s; }
  /// Seconds that a node spends on preparing a payload of `bytes` before it sends it. A store prepares
  /// nothing.
  [[nodiscard]] virtual double payload_s(costmodel::NodeId node, double bytes) const = 0;

 protected:
  const costmodel::NetworkModel& network_;
};

}  // namespace fomoe::sim
