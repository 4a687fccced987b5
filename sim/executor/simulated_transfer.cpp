#include "sim/executor/simulated_transfer.hpp"

#include <algorithm>

namespace fomoe::sim {

using costmodel::NodeId;

SimulatedTransfer::SimulatedTransfer(std::vector<Channel> channels, int nodes, std::int64_t round,
                                     bool record_flows, Queue queue, Transport& transport,
                                     costmodel::Timeline& timeline, std::function<void(NodeId)> done)
    : channels_left_(static_cast<std::size_t>(nodes), 0),
      nodes_(nodes),
      round_(round),
      record_flows_(record_flows),
      queue_(std::move(queue)),
      transport_(transport),
      fluid_(transport.fluid()),
      timeline_(timeline),
      done_(std::move(done)) {
  for (Channel& channel : channels) {
    ChannelRun run;
    run.channel = std::move(channel);
    index_flows(run);
    flows_to_leave_ += run.channel.flows.size();
    for (NodeId node = 0; node < nodes; ++node) {
      if (step_from(run, node, 0) < run.channel.steps) ++channels_left_[static_cast<std::size_t>(node)];
    }
    run.messages.resize(run.channel.flows.size());
    run.start_s.assign(run.channel.flows.size(), 0);
    run.wanted_s.assign(run.channel.flows.size(), 0);
    run.early.assign(run.channel.flows.size(), 0);
    run.nodes.resize(static_cast<std::size_t>(nodes));
    channels_.push_back(std::move(run));
  }
}

// A counting sort by (node, step). Each flow is in the list of its sender and in the list of its receiver.
void SimulatedTransfer::index_flows(ChannelRun& run) const {
  const auto steps = static_cast<std::size_t>(run.channel.steps);
  const auto key = [&](NodeId node, std::int32_t step) {
    return static_cast<std::size_t>(node) * steps + static_cast<std::size_t>(step);
  };
  run.begin.assign(static_cast<std::size_t>(nodes_) * steps + 1, 0);
  for (const Flow& flow : run.channel.flows) {
    ++run.begin[key(flow.from, flow.step) + 1];
    ++run.begin[key(flow.to, flow.step) + 1];
  }
  for (std::size_t i = 1; i < run.begin.size(); ++i) run.begin[i] += run.begin[i - 1];
  std::vector<std::uint32_t> next(run.begin.begin(), run.begin.end() - 1);
  run.of_step.resize(2 * run.channel.flows.size());
  for (FlowIndex f = 0; f < run.channel.flows.size(); ++f) {
    const Flow& flow = run.channel.flows[f];
    run.of_step[next[key(flow.from, flow.step)]++] = f;
    run.of_step[next[key(flow.to, flow.step)]++] = f;
  }
}

SimulatedTransfer::Range SimulatedTransfer::flows_of(const ChannelRun& run, NodeId node,
                                                     std::int32_t step) const {
  const auto key = static_cast<std::size_t>(node) * static_cast<std::size_t>(run.channel.steps) +
                   static_cast<std::size_t>(step);
  return {run.begin[key], run.begin[key + 1]};
}

std::int32_t SimulatedTransfer::step_from(const ChannelRun& run, NodeId node, std::int32_t step) const {
  for (; step < run.channel.steps; ++step) {
    const auto [begin, end] = flows_of(run, node, step);
    if (begin < end) break;
  }
  return step;
}

void SimulatedTransfer::expect(NodeId node) {
  for (std::int32_t step = 0; step < transport_.steps_accepted_ahead(); ++step)
    for (std::uint32_t channel = 0; channel < channels_.size(); ++channel) accept(channel, node, step);
}

void SimulatedTransfer::start(NodeId node) {
  for (std::uint32_t channel = 0; channel < channels_.size(); ++channel) {
    if (step_from(channels_[channel], node, 0) < channels_[channel].channel.steps) next_step(channel, node);
  }
}

void SimulatedTransfer::next_step(std::uint32_t channel, NodeId node) {
  ChannelRun& run = channels_[channel];
  NodeProgress& progress = run.nodes[static_cast<std::size_t>(node)];
  progress.step = step_from(run, node, progress.step + 1);
  if (progress.step == run.channel.steps) {
    if (--channels_left_[static_cast<std::size_t>(node)] == 0) done_(node);
    return;
  }
  progress.step_start_s = fluid_.now();
  progress.open = false;
  const std::int32_t calls = progress.step / run.channel.steps_per_call + 1;
  double sent_bytes = 0;
  const auto [begin, end] = flows_of(run, node, progress.step);
  for (std::uint32_t i = begin; i < end; ++i) {
    const Flow& flow = run.channel.flows[run.of_step[i]];
    if (flow.from == node) sent_bytes += static_cast<double>(flow.bytes);
  }
  const double overhead_s =
      (calls > progress.calls ? transport_.call_overhead_s() : 0) + transport_.payload_s(node, sent_bytes);
  progress.calls = calls;
  if (overhead_s > 0) {
    fluid_.after(overhead_s, [this, channel, node, overhead_s] { open_step(channel, node, overhead_s); });
  } else {
    open_step(channel, node, 0);
  }
}

Message& SimulatedTransfer::message(FlowRef ref) {
  ChannelRun& run = channels_[ref.channel];
  std::unique_ptr<Message>& message = run.messages[ref.flow];
  const Flow& flow = run.channel.flows[ref.flow];
  if (!message) message = transport_.message(flow.from, flow.to, flow.bytes, *this, ref);
  return *message;
}

// All sends of a step start together. Receives are ready some steps ahead, as far as the transport has it.
void SimulatedTransfer::open_step(std::uint32_t channel, NodeId node, double overhead_s) {
  if (abandoned_) return;
  ChannelRun& run = channels_[channel];
  NodeProgress& progress = run.nodes[static_cast<std::size_t>(node)];
  const std::int32_t step = progress.step;
  const auto [begin, end] = flows_of(run, node, step);
  progress.open = true;
  progress.pending = 1;  // so that the step does not end before all of it has begun
  for (std::uint32_t i = begin; i < end; ++i) {
    if (!run.early[run.of_step[i]]) ++progress.pending;
  }
  for (std::uint32_t i = begin; i < end; ++i) {
    const Flow& flow = run.channel.flows[run.of_step[i]];
    const FlowRef ref{channel, run.of_step[i]};
    if (flow.from == node) {
      message(ref).offer(overhead_s);
    } else if (progress.accepted < step) {
      message(ref).accept();
    }
  }
  progress.accepted = std::max(progress.accepted, step);
  while (progress.accepted < std::min(step + transport_.steps_accepted_ahead(), run.channel.steps - 1))
    accept(channel, node, progress.accepted + 1);
  if (--progress.pending == 0) end_step(channel, node);
}

void SimulatedTransfer::accept(std::uint32_t channel, NodeId node, std::int32_t step) {
  ChannelRun& run = channels_[channel];
  if (step >= run.channel.steps) return;
  run.nodes[static_cast<std::size_t>(node)].accepted = step;
  const auto [begin, end] = flows_of(run, node, step);
  for (std::uint32_t i = begin; i < end; ++i)
    if (run.channel.flows[run.of_step[i]].to == node) message({channel, run.of_step[i]}).accept();
}

void SimulatedTransfer::when_first(FlowRef /*ref*/, Fluid::Callback depart) {
  queue_.when_first ? queue_.when_first(std::move(depart)) : depart();
}

void SimulatedTransfer::all_left(FlowRef /*ref*/) {
  if (--flows_to_leave_ == 0 && !abandoned_) queue_.left();
}

void SimulatedTransfer::moving(FlowRef ref, double lead_s) {
  ChannelRun& run = channels_[ref.channel];
  const Flow& flow = run.channel.flows[ref.flow];
  run.start_s[ref.flow] = fluid_.now();
  run.wanted_s[ref.flow] = fluid_.now() - lead_s;
  timeline_.sent.add(flow.from, flow.to, static_cast<double>(flow.bytes));
}

void SimulatedTransfer::sent(FlowRef ref) {
  if (abandoned_) return;
  ChannelRun& run = channels_[ref.channel];
  end_done(ref.channel, run.channel.flows[ref.flow].from, run.wanted_s[ref.flow]);
}

void SimulatedTransfer::arrived(FlowRef ref) {
  if (abandoned_) return;
  ChannelRun& run = channels_[ref.channel];
  const Flow flow = run.channel.flows[ref.flow];
  if (record_flows_)
    timeline_.flow_records.push_back(
        {flow.from, flow.to, static_cast<double>(flow.bytes), run.start_s[ref.flow], fluid_.now()});
  const std::unique_ptr<Message> over = std::move(run.messages[ref.flow]);
  const NodeProgress& receiver = run.nodes[static_cast<std::size_t>(flow.to)];
  if (receiver.step < flow.step || !receiver.open) {
    run.early[ref.flow] = 1;
  } else {
    end_done(ref.channel, flow.to, run.wanted_s[ref.flow]);
  }
}

void SimulatedTransfer::end_done(std::uint32_t channel, NodeId node, double start_s) {
  NodeProgress& progress = channels_[channel].nodes[static_cast<std::size_t>(node)];
  progress.spans.emplace_back(std::max(progress.step_start_s, start_s), fluid_.now());
  if (--progress.pending == 0) end_step(channel, node);
}

void SimulatedTransfer::end_step(std::uint32_t channel, NodeId node) {
  record(node, channels_[channel].nodes[static_cast<std::size_t>(node)].spans);
  next_step(channel, node);
}

// Merges the spans of a step's flows before recording them. The flows mostly overlap, so one or two spans
// remain.
void SimulatedTransfer::record(NodeId node, std::vector<std::pair<double, double>>& spans) {
  std::sort(spans.begin(), spans.end());
  for (std::size_t i = 0; i < spans.size();) {
    auto [start_s, end_s] = spans[i++];
    for (; i < spans.size() && spans[i].first <= end_s; ++i) end_s = std::max(end_s, spans[i].second);
    timeline_.flows.push_back({node, round_, start_s, end_s});
  }
  spans.clear();
}

}  // namespace fomoe::sim
