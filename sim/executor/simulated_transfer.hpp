// Executes one transfer of one round. Each node goes through its steps at its own pace, without a barrier.
#pragma once
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "costmodel/timeline/timeline.hpp"
#include "sim/executor/lowering.hpp"
#include "sim/transport/transport.hpp"

namespace fomoe::sim {

/// The place of a transfer among others (Op::receive_after). Both are empty if no transfer of the round
/// queues.
struct Queue {
  /// Calls back when the bytes of the transfers before this one have left.
  std::function<void(Fluid::Callback)> when_first;
  std::function<void()> left;  // must be called when all bytes of this transfer have left
};

class SimulatedTransfer : private MessageEvents {
 public:
  /// Calls `done(node)` once for each node that takes part. The object must outlive the last of these calls.
  /// With `record_flows` the timeline records every flow.
  SimulatedTransfer(std::vector<Channel> channels, int nodes, std::int64_t round, bool record_flows,
                    Queue queue, Transport& transport, costmodel::Timeline& timeline,
                    std::function<void(costmodel::NodeId)> done);

  [[nodiscard]] bool takes_part(costmodel::NodeId node) const {
    return channels_left_[static_cast<std::size_t>(node)] > 0;
  }
  /// The round of the transfer begins for the node: it is ready for messages of the first steps, as far as
  /// the transport has it.
  void expect(costmodel::NodeId node);
  /// Starts the node's first step: the node may send and receive from now on.
  void start(costmodel::NodeId node);
  /// Ends the transfer without further calls of `done`. The caller cancels its flows.
  void abandon() { abandoned_ = true; }

 private:
  using FlowIndex = std::uint32_t;

  /// The progress of a node in a channel.
  struct NodeProgress {
    std::int32_t step = -1;
    std::int32_t calls = 0;      // calls of the collective that the node has begun
    std::int32_t pending = 0;    // sent and received flows of the step that have not ended for the node
    bool open = false;           // the step's flows have begun, as far as the node is concerned
    std::int32_t accepted = -1;  // the last step whose messages it is ready for
    double step_start_s = 0;
    std::vector<std::pair<double, double>> spans;  // (start, end) of this step's flows, in seconds
  };
  struct ChannelRun {
    Channel channel;
    std::vector<FlowIndex> of_step;    // flows sorted by (node, step); a flow occurs for both of its ends
    std::vector<std::uint32_t> begin;  // [node · steps + step]: index of its first flow in of_step
    std::vector<std::unique_ptr<Message>>
        messages;                  // [flow]: those that an end has begun and that are under way
    std::vector<double> start_s;   // [flow]: time when its first byte moved
    std::vector<double> wanted_s;  // [flow]: when the sender wished to send, as far as the receiver was ready
    std::vector<char> early;       // [flow]: it has arrived before the receiver began its step
    std::vector<NodeProgress> nodes;
  };

  using Range = std::pair<std::uint32_t, std::uint32_t>;  // (begin, end) in of_step
  void index_flows(ChannelRun& run) const;
  [[nodiscard]] Range flows_of(const ChannelRun& run, costmodel::NodeId node, std::int32_t step) const;
  /// The first step, from `step` on, in which the node has flows; run.channel.steps if there is none.
  [[nodiscard]] std::int32_t step_from(const ChannelRun& run, costmodel::NodeId node,
                                       std::int32_t step) const;
  void next_step(std::uint32_t channel, costmodel::NodeId node);
  void open_step(std::uint32_t channel, costmodel::NodeId node, double overhead_s);
  /// Tells the messages that the node receives in the step that it is ready for them, unless it has before.
  void accept(std::uint32_t channel, costmodel::NodeId node, std::int32_t step);
  Message& message(FlowRef ref);
  void moving(FlowRef ref, double lead_s) override;
  void all_left(FlowRef ref) override;
  void sent(FlowRef ref) override;
  void arrived(FlowRef ref) override;
  void when_first(FlowRef ref, Fluid::Callback depart) override;
  [[nodiscard]] bool asks_for_leaving() const override { return static_cast<bool>(queue_.left); }
  [[nodiscard]] bool abandoned() const override { return abandoned_; }
  void end_step(std::uint32_t channel, costmodel::NodeId node);
  void end_done(std::uint32_t channel, costmodel::NodeId node, double start_s);
  void record(costmodel::NodeId node, std::vector<std::pair<double, double>>& spans);

  std::vector<ChannelRun> channels_;
  std::vector<std::uint32_t> channels_left_;  // [node]: number of channels that the node has not finished
  int nodes_;
  std::int64_t round_;
  bool record_flows_;
  Queue queue_;
  std::size_t flows_to_leave_ = 0;
  bool abandoned_ = false;
  Transport& transport_;
  Fluid& fluid_;
  costmodel::Timeline& timeline_;
  std::function<void(costmodel::NodeId)> done_;
};

}  // namespace fomoe::sim
