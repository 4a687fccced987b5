#include "sim/executor/transfer_run.hpp"

#include <algorithm>

namespace fomoe::sim {

using costmodel::NodeId;

TransferRun::TransferRun(std::vector<Lane> lanes, int nodes, std::int64_t round, bool record_flows,
                         Engine& engine, costmodel::Timeline& timeline, std::function<void(NodeId)> done)
    : lanes_left_(static_cast<std::size_t>(nodes), 0),
      nodes_(nodes),
      round_(round),
      record_flows_(record_flows),
      engine_(engine),
      timeline_(timeline),
      done_(std::move(done)) {
  for (Lane& lane : lanes) {
    LaneRun run;
    run.lane = std::move(lane);
    index_flows(run);
    for (NodeId node = 0; node < nodes; ++node) {
      if (step_from(run, node, 0) < run.lane.steps) ++lanes_left_[static_cast<std::size_t>(node)];
    }
    run.ready.assign(run.lane.flows.size(), 0);
    run.awaited.assign(run.lane.flows.size(), 0);
    run.arrived.assign(run.lane.flows.size(), 0);
    run.waits.assign(run.lane.flows.size(), 0);
    run.start_s.assign(run.lane.flows.size(), 0);
    run.lead_s.assign(run.lane.flows.size(), 0);
    run.nodes.resize(static_cast<std::size_t>(nodes));
    lanes_.push_back(std::move(run));
  }
}

// Counting sort by (node, step); each flow is in the list of its sender and in that of its receiver.
void TransferRun::index_flows(LaneRun& run) const {
  const auto steps = static_cast<std::size_t>(run.lane.steps);
  const auto key = [&](NodeId node, std::int32_t step) {
    return static_cast<std::size_t>(node) * steps + static_cast<std::size_t>(step);
  };
  run.begin.assign(static_cast<std::size_t>(nodes_) * steps + 1, 0);
  run.beside.assign(run.begin.size() - 1, {0, 0});
  for (const Flow& flow : run.lane.flows) {
    if (engine_.leaves_site(flow.from, flow.to)) {
      ++run.beside[key(flow.from, flow.step)].sent;
      ++run.beside[key(flow.to, flow.step)].received;
    }
    ++run.begin[key(flow.from, flow.step) + 1];
    ++run.begin[key(flow.to, flow.step) + 1];
  }
  for (std::size_t i = 1; i < run.begin.size(); ++i) run.begin[i] += run.begin[i - 1];
  std::vector<std::uint32_t> next(run.begin.begin(), run.begin.end() - 1);
  run.of_step.resize(2 * run.lane.flows.size());
  for (FlowIndex f = 0; f < run.lane.flows.size(); ++f) {
    const Flow& flow = run.lane.flows[f];
    run.of_step[next[key(flow.from, flow.step)]++] = f;
    run.of_step[next[key(flow.to, flow.step)]++] = f;
  }
}

TransferRun::Range TransferRun::flows_of(const LaneRun& run, NodeId node, std::int32_t step) const {
  const auto key = static_cast<std::size_t>(node) * static_cast<std::size_t>(run.lane.steps) +
                   static_cast<std::size_t>(step);
  return {run.begin[key], run.begin[key + 1]};
}

Beside TransferRun::beside(const LaneRun& run, const Flow& flow) const {
  const auto of = [&](NodeId node) {
    return run.beside[static_cast<std::size_t>(node) * static_cast<std::size_t>(run.lane.steps) +
                      static_cast<std::size_t>(flow.step)];
  };
  return {of(flow.from).sent, of(flow.to).received};
}

std::int32_t TransferRun::step_from(const LaneRun& run, NodeId node, std::int32_t step) const {
  for (; step < run.lane.steps; ++step) {
    const auto [begin, end] = flows_of(run, node, step);
    if (begin < end) break;
  }
  return step;
}

void TransferRun::post_receives(std::uint32_t lane, NodeId node, std::int32_t step) {
  const LaneRun& run = lanes_[lane];
  if (step == run.lane.steps) return;
  const auto [begin, end] = flows_of(run, node, step);
  for (std::uint32_t i = begin; i < end; ++i) {
    const FlowIndex index = run.of_step[i];
    const Flow& flow = run.lane.flows[index];
    if (flow.to != node) continue;
    engine_.after(engine_.latency_s(node, flow.from), [this, lane, index] { end_ready(lane, index); });
  }
}

void TransferRun::expect(NodeId node) {
  for (std::uint32_t lane = 0; lane < lanes_.size(); ++lane)
    post_receives(lane, node, step_from(lanes_[lane], node, 0));
}

void TransferRun::start(NodeId node) {
  for (std::uint32_t lane = 0; lane < lanes_.size(); ++lane) {
    if (step_from(lanes_[lane], node, 0) < lanes_[lane].lane.steps) next_step(lane, node);
  }
}

void TransferRun::next_step(std::uint32_t lane, NodeId node) {
  LaneRun& run = lanes_[lane];
  Progress& progress = run.nodes[static_cast<std::size_t>(node)];
  progress.step = step_from(run, node, progress.step + 1);
  if (progress.step == run.lane.steps) {
    if (--lanes_left_[static_cast<std::size_t>(node)] == 0) done_(node);
    return;
  }
  if (engine_.early_receives()) post_receives(lane, node, step_from(run, node, progress.step + 1));
  progress.step_start_s = engine_.now();
  const std::int32_t calls = progress.step / run.lane.steps_per_call + 1;
  double sent_bytes = 0;
  const auto [begin, end] = flows_of(run, node, progress.step);
  for (std::uint32_t i = begin; i < end; ++i) {
    const Flow& flow = run.lane.flows[run.of_step[i]];
    if (flow.from == node) sent_bytes += static_cast<double>(flow.bytes);
  }
  const double overhead_s =
      (calls > progress.calls ? engine_.call_overhead_s() : 0) + engine_.payload_s(sent_bytes);
  progress.calls = calls;
  if (overhead_s > 0) {
    engine_.after(overhead_s, [this, lane, node, overhead_s] { open_step(lane, node, overhead_s); });
  } else {
    open_step(lane, node, 0);
  }
}

// A flow begins when the sender has waited out its latency and what else delays the first byte, and the
// receiver is ready for it: a rendezvous. All sends of a step leave together, each after its own wait.
void TransferRun::open_step(std::uint32_t lane, NodeId node, double overhead_s) {
  LaneRun& run = lanes_[lane];
  Progress& progress = run.nodes[static_cast<std::size_t>(node)];
  const auto [begin, end] = flows_of(run, node, progress.step);
  progress.pending = 0;
  for (std::uint32_t i = begin; i < end; ++i) {
    const FlowIndex index = run.of_step[i];
    const Flow& flow = run.lane.flows[index];
    if (flow.to == node) {
      run.awaited[index] = 1;
      if (run.arrived[index] == 0) ++progress.pending;
      continue;
    }
    run.lead_s[index] = engine_.wait_s(flow.from, flow.to, flow.bytes, beside(run, flow));
    run.waits[index] = engine_.takes(flow.from, flow.to, flow.bytes) ? 0 : 1;
    if (run.waits[index] != 0) ++progress.pending;
  }
  if (progress.pending == 0) engine_.soon([this, lane, node] { end_step(lane, node); });
  for (std::uint32_t i = begin; i < end; ++i) {
    const FlowIndex index = run.of_step[i];
    const Flow& flow = run.lane.flows[index];
    if (flow.to == node && engine_.early_receives()) continue;  // posted before
    const double wait_s = flow.from == node ? run.lead_s[index] : 0;
    if (flow.from == node) run.lead_s[index] += overhead_s;
    if (wait_s > 0) {
      engine_.after(wait_s, [this, lane, index] { end_ready(lane, index); });
    } else {
      end_ready(lane, index);
    }
  }
}

void TransferRun::end_ready(std::uint32_t lane, FlowIndex index) {
  LaneRun& run = lanes_[lane];
  if (++run.ready[index] < 2) return;
  const Flow& flow = run.lane.flows[index];
  run.start_s[index] = engine_.now();
  timeline_.sent.at(flow.from, flow.to) += static_cast<double>(flow.bytes);
  Engine::Callback taken;
  if (engine_.buffers_sends() && run.waits[index] != 0)
    taken = [this, lane, index, from = flow.from] { end_done(lane, from, wanted_s(lane, index)); };
  engine_.send(
      flow.from, flow.to, flow.bytes, [this, lane, index] { flow_ended(lane, index); }, std::move(taken));
}

/// When the sender wished to send it.
double TransferRun::wanted_s(std::uint32_t lane, FlowIndex index) const {
  return lanes_[lane].start_s[index] - lanes_[lane].lead_s[index];
}

void TransferRun::flow_ended(std::uint32_t lane, FlowIndex index) {
  LaneRun& run = lanes_[lane];
  const Flow flow = run.lane.flows[index];
  if (record_flows_)
    timeline_.flow_records.push_back(
        {flow.from, flow.to, static_cast<double>(flow.bytes), run.start_s[index], engine_.now()});
  run.arrived[index] = 1;
  const bool awaited = run.awaited[index] != 0;
  if (!engine_.buffers_sends()) end_done(lane, flow.from, wanted_s(lane, index));
  if (awaited) end_done(lane, flow.to, wanted_s(lane, index));
}

void TransferRun::end_done(std::uint32_t lane, NodeId node, double start_s) {
  Progress& progress = lanes_[lane].nodes[static_cast<std::size_t>(node)];
  progress.spans.emplace_back(std::max(progress.step_start_s, start_s), engine_.now());
  if (--progress.pending == 0) end_step(lane, node);
}

void TransferRun::end_step(std::uint32_t lane, NodeId node) {
  record(node, lanes_[lane].nodes[static_cast<std::size_t>(node)].spans);
  next_step(lane, node);
}

// Flows of one step mostly overlap: what they cover together is one or two spans.
void TransferRun::record(NodeId node, std::vector<std::pair<double, double>>& spans) {
  std::sort(spans.begin(), spans.end());
  for (std::size_t i = 0; i < spans.size();) {
    auto [start_s, end_s] = spans[i++];
    for (; i < spans.size() && spans[i].first <= end_s; ++i) end_s = std::max(end_s, spans[i].second);
    timeline_.flows.push_back({node, round_, start_s, end_s});
  }
  spans.clear();
}

}  // namespace fomoe::sim
