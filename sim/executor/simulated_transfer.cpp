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
    run.ready.assign(run.channel.flows.size(), 0);
    run.start_s.assign(run.channel.flows.size(), 0);
    run.lead_s.assign(run.channel.flows.size(), 0);
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
  run.concurrent.assign(run.begin.size() - 1, {0, 0});
  for (const Flow& flow : run.channel.flows) {
    if (fluid_.leaves_site(flow.from, flow.to)) {
      ++run.concurrent[key(flow.from, flow.step)].sent;
      ++run.concurrent[key(flow.to, flow.step)].received;
    }
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

ConcurrentFlows SimulatedTransfer::concurrent_flows(const ChannelRun& run, const Flow& flow) const {
  const auto of = [&](NodeId node) {
    return run.concurrent[static_cast<std::size_t>(node) * static_cast<std::size_t>(run.channel.steps) +
                          static_cast<std::size_t>(flow.step)];
  };
  return {of(flow.from).sent, of(flow.to).received};
}

std::int32_t SimulatedTransfer::step_from(const ChannelRun& run, NodeId node, std::int32_t step) const {
  for (; step < run.channel.steps; ++step) {
    const auto [begin, end] = flows_of(run, node, step);
    if (begin < end) break;
  }
  return step;
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
  const std::int32_t calls = progress.step / run.channel.steps_per_call + 1;
  double sent_bytes = 0;
  const auto [begin, end] = flows_of(run, node, progress.step);
  for (std::uint32_t i = begin; i < end; ++i) {
    const Flow& flow = run.channel.flows[run.of_step[i]];
    if (flow.from == node) sent_bytes += static_cast<double>(flow.bytes);
  }
  const double overhead_s =
      (calls > progress.calls ? transport_.call_overhead_s() : 0) + transport_.payload_s(sent_bytes);
  progress.calls = calls;
  if (overhead_s > 0) {
    fluid_.after(overhead_s, [this, channel, node, overhead_s] { open_step(channel, node, overhead_s); });
  } else {
    open_step(channel, node, 0);
  }
}

// A flow begins with a rendezvous: the sender has waited for the latency and the other delays of the first
// byte, and the receiver is ready. All sends of a step start together, each after its own delay.
void SimulatedTransfer::open_step(std::uint32_t channel, NodeId node, double overhead_s) {
  if (abandoned_) return;
  ChannelRun& run = channels_[channel];
  NodeProgress& progress = run.nodes[static_cast<std::size_t>(node)];
  const auto [begin, end] = flows_of(run, node, progress.step);
  progress.pending = static_cast<std::int32_t>(end - begin);
  for (std::uint32_t i = begin; i < end; ++i) {
    const FlowIndex index = run.of_step[i];
    const Flow& flow = run.channel.flows[index];
    const bool sender = flow.from == node;
    if (!sender) {
      end_ready(channel, index, sender);
      continue;
    }
    const Wait wait = transport_.wait(flow.from, flow.to, flow.bytes, concurrent_flows(run, flow));
    run.lead_s[index] = wait.seconds + overhead_s;
    if (transport_.departs_early(flow.from, flow.to)) {
      const double latency_s = fluid_.latency_s(flow.from, flow.to);
      ramp_up(channel, index, wait.seconds - latency_s, latency_s, wait.ramp);
    } else if (wait.seconds > 0) {
      fluid_.after(wait.seconds, [this, channel, index] { end_ready(channel, index, true); });
    } else {
      end_ready(channel, index, true);
    }
  }
}

/// Departs after `wait_s`. The flow may then have a larger share of the links than when its ramp began, since
/// flows with lower latencies have ended; its window grows further before it departs.
void SimulatedTransfer::ramp_up(std::uint32_t channel, FlowIndex index, double wait_s, double latency_s,
                                Ramp ramp) {
  if (abandoned_) return;
  if (wait_s <= 0) {
    if (!queue_.when_first) return depart(channel, index, latency_s);
    return queue_.when_first([this, channel, index, latency_s] { depart(channel, index, latency_s); });
  }
  fluid_.after(wait_s, [this, channel, index, latency_s, ramp]() mutable {
    const Flow& flow = channels_[channel].channel.flows[index];
    const double longer_s = abandoned_ ? 0 : transport_.longer_ramp_s(flow.from, flow.to, ramp);
    channels_[channel].lead_s[index] += longer_s;
    ramp_up(channel, index, longer_s, latency_s, ramp);
  });
}

void SimulatedTransfer::depart(std::uint32_t channel, FlowIndex index, double latency_s) {
  if (abandoned_) return;
  ChannelRun& run = channels_[channel];
  const Flow& flow = run.channel.flows[index];
  if (run.departures.empty()) run.departures.resize(run.channel.flows.size());
  Fluid::Callback left;
  if (queue_.left)
    left = [this] {
      if (--flows_to_leave_ == 0 && !abandoned_) queue_.left();
    };
  run.departures[index] = transport_.depart(flow.from, flow.to, flow.bytes, std::move(left));
  fluid_.after(latency_s, [this, channel, index] { end_ready(channel, index, true); });
}

void SimulatedTransfer::end_ready(std::uint32_t channel, FlowIndex index, bool sender) {
  if (abandoned_) return;
  ChannelRun& run = channels_[channel];
  const bool departed = !run.departures.empty() && run.departures[index] != nullptr;
  if (++run.ready[index] < 2) {
    if (sender && departed) transport_.hold(*run.departures[index]);
    return;
  }
  const Flow& flow = run.channel.flows[index];
  run.start_s[index] = fluid_.now();
  timeline_.sent.add(flow.from, flow.to, static_cast<double>(flow.bytes));
  transport_.send(flow.from, flow.to, flow.bytes, departed ? std::move(run.departures[index]) : nullptr,
                  [this, channel, index] { flow_ended(channel, index); });
}

/// The time at which the sender wished to send the flow.
double SimulatedTransfer::wanted_s(std::uint32_t channel, FlowIndex index) const {
  return channels_[channel].start_s[index] - channels_[channel].lead_s[index];
}

void SimulatedTransfer::flow_ended(std::uint32_t channel, FlowIndex index) {
  if (abandoned_) return;
  ChannelRun& run = channels_[channel];
  const Flow flow = run.channel.flows[index];
  if (record_flows_)
    timeline_.flow_records.push_back(
        {flow.from, flow.to, static_cast<double>(flow.bytes), run.start_s[index], fluid_.now()});
  end_done(channel, flow.from, wanted_s(channel, index));
  end_done(channel, flow.to, wanted_s(channel, index));
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
