// One transfer of one round, played by all its nodes: each goes through its steps at its own pace.
#pragma once
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "costmodel/timeline/timeline.hpp"
#include "sim/engine/engine.hpp"
#include "sim/executor/lowering.hpp"

namespace fomoe::sim {

class TransferRun {
 public:
  /// `done(node)` is called once for each node that takes part. The run must outlive the last of these calls.
  TransferRun(std::vector<Channel> channels, int nodes, std::int64_t round, bool record_flows, Engine& engine,
              costmodel::Timeline& timeline, std::function<void(costmodel::NodeId)> done);

  [[nodiscard]] bool takes_part(costmodel::NodeId node) const {
    return channels_left_[static_cast<std::size_t>(node)] > 0;
  }
  /// Where receives are early: the node has come to the transfer's round.
  void expect(costmodel::NodeId node);
  /// The node may send and receive from now on.
  void start(costmodel::NodeId node);

 private:
  using FlowIndex = std::uint32_t;

  /// Where a node stands in a channel.
  struct Progress {
    std::int32_t step = -1;
    std::int32_t calls = 0;    // of a collective that it has begun
    std::int32_t pending = 0;  // flows of the step that have not ended for the node, sent and received
    double step_start_s = 0;
    std::vector<std::pair<double, double>> spans;  // of this step's flows
  };
  struct LaneRun {
    Channel channel;
    std::vector<FlowIndex> of_step;    // flows of (node, step), in the order of steps
    std::vector<std::uint32_t> begin;  // [node · steps + step]: where they begin in of_step
    std::vector<Beside> beside;        // [node · steps + step]: flows of the node that leave the site
    std::vector<char> ready;           // per flow: how many of its two ends are
    std::vector<char> awaited;         // per flow: the receiver has come to its step
    std::vector<char> arrived;         // per flow
    std::vector<char> waits;      // per flow: its sender does, until its kernel has taken it or it is there
    std::vector<double> start_s;  // per flow: when its first byte moved
    std::vector<double> lead_s;   // per flow: what the sender waited before, from its wish to send
    std::vector<Progress> nodes;
  };

  using Range = std::pair<std::uint32_t, std::uint32_t>;  // of of_step
  void index_flows(LaneRun& run) const;
  [[nodiscard]] Range flows_of(const LaneRun& run, costmodel::NodeId node, std::int32_t step) const;
  [[nodiscard]] Beside beside(const LaneRun& run, const Flow& flow) const;
  /// The first of the node's steps from `step` on in which it has flows; run.channel.steps if there is none.
  [[nodiscard]] std::int32_t step_from(const LaneRun& run, costmodel::NodeId node, std::int32_t step) const;
  void post_receives(std::uint32_t channel, costmodel::NodeId node, std::int32_t step);
  void next_step(std::uint32_t channel, costmodel::NodeId node);
  void open_step(std::uint32_t channel, costmodel::NodeId node, double overhead_s);
  void end_ready(std::uint32_t channel, FlowIndex flow);
  void flow_ended(std::uint32_t channel, FlowIndex flow);
  [[nodiscard]] double wanted_s(std::uint32_t channel, FlowIndex flow) const;
  void end_step(std::uint32_t channel, costmodel::NodeId node);
  void end_done(std::uint32_t channel, costmodel::NodeId node, double start_s);
  void record(costmodel::NodeId node, std::vector<std::pair<double, double>>& spans);

  std::vector<LaneRun> channels_;
  std::vector<std::uint32_t> channels_left_;  // per node: channels that it has not gone through
  int nodes_;
  std::int64_t round_;
  bool record_flows_;
  Engine& engine_;
  costmodel::Timeline& timeline_;
  std::function<void(costmodel::NodeId)> done_;
};

}  // namespace fomoe::sim
