#include "sim/transfer_run.hpp"

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
    for (std::size_t node = 0; node < static_cast<std::size_t>(nodes); ++node) {
      const auto steps = static_cast<std::size_t>(run.lane.steps);
      if (run.begin[node * steps] < run.begin[(node + 1) * steps]) ++lanes_left_[node];
    }
    run.ready.assign(run.lane.flows.size(), 0);
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
  for (const Flow& flow : run.lane.flows) {
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

void TransferRun::start(NodeId node) {
  for (std::uint32_t lane = 0; lane < lanes_.size(); ++lane) {
    const LaneRun& run = lanes_[lane];
    const auto steps = static_cast<std::size_t>(run.lane.steps), n = static_cast<std::size_t>(node);
    if (run.begin[n * steps] < run.begin[(n + 1) * steps]) next_step(lane, node);
  }
}

void TransferRun::next_step(std::uint32_t lane, NodeId node) {
  LaneRun& run = lanes_[lane];
  Progress& progress = run.nodes[static_cast<std::size_t>(node)];
  const std::uint32_t* begin =
      &run.begin[static_cast<std::size_t>(node) * static_cast<std::size_t>(run.lane.steps)];
  do {
    if (++progress.step == run.lane.steps) {
      if (--lanes_left_[static_cast<std::size_t>(node)] == 0) done_(node);
      return;
    }
  } while (begin[progress.step] == begin[progress.step + 1]);
  progress.step_start_s = engine_.now();
  const std::int32_t calls = progress.step / run.lane.steps_per_call + 1;
  double sent_bytes = 0;
  for (std::uint32_t i = begin[progress.step]; i < begin[progress.step + 1]; ++i) {
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
  const auto first = static_cast<std::size_t>(node) * static_cast<std::size_t>(run.lane.steps) +
                     static_cast<std::size_t>(progress.step);
  const std::uint32_t begin = run.begin[first], end = run.begin[first + 1];
  progress.pending = static_cast<std::int32_t>(end - begin);
  for (std::uint32_t i = begin; i < end; ++i) {
    const FlowIndex index = run.of_step[i];
    const Flow& flow = run.lane.flows[index];
    const double wait_s = flow.from == node ? engine_.wait_s(flow.from, flow.to, flow.bytes) : 0;
    if (flow.from == node) run.lead_s[index] = overhead_s + wait_s;
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
  engine_.send(flow.from, flow.to, flow.bytes, [this, lane, index] { flow_ended(lane, index); });
}

void TransferRun::flow_ended(std::uint32_t lane, FlowIndex index) {
  const Flow flow = lanes_[lane].lane.flows[index];
  const double first_byte_s = lanes_[lane].start_s[index];
  if (record_flows_)
    timeline_.flow_records.push_back(
        {flow.from, flow.to, static_cast<double>(flow.bytes), first_byte_s, engine_.now()});
  const double start_s = first_byte_s - lanes_[lane].lead_s[index];
  end_done(lane, flow.from, start_s);
  end_done(lane, flow.to, start_s);
}

void TransferRun::end_done(std::uint32_t lane, NodeId node, double start_s) {
  Progress& progress = lanes_[lane].nodes[static_cast<std::size_t>(node)];
  progress.spans.emplace_back(std::max(progress.step_start_s, start_s), engine_.now());
  if (--progress.pending > 0) return;
  record(node, progress.spans);
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
