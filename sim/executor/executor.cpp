#include "sim/executor/executor.hpp"

#include <algorithm>
#include <map>
#include <stdexcept>
#include <string>

namespace fomoe::sim {

using costmodel::NodeId;
using costmodel::OpId;

namespace {
constexpr double kNoPart = -1;
}

struct Executor::Round {
  std::size_t position = 0;
  costmodel::RoundPlan plan;
  std::vector<std::vector<OpId>> next;                  // [op]: operations of this round that wait for it
  std::vector<std::unique_ptr<TransferRun>> transfers;  // [op]; empty for computations
  // [node][op]: predecessors that have not ended; the round's start counts as one.
  std::vector<std::vector<std::size_t>> waits;
  std::vector<std::vector<char>> ended;      // [node][op]
  std::vector<std::vector<double>> start_s;  // [node][op]; kNoPart if the node takes no part in the operation
  std::vector<std::size_t> attached_ops;     // [node]: unfinished operations that its next round waits for
  std::vector<char> started;                 // [node]
  // For each (rounds back, operation) of an earlier round, the operations of this round that wait for it. One
  // that names it twice is listed twice.
  std::map<std::pair<std::int64_t, OpId>, std::vector<OpId>> after_earlier;
  std::size_t unfinished = 0;  // (node, operation) pairs that have not ended
};

Executor::Executor(const costmodel::Plan& plan, const Sequence& sequence, Transport& transport,
                   const ComputeSeconds& seconds, const Options& options)
    : plan_(plan),
      sequence_(sequence.rounds),
      held_rounds_(sequence.held_rounds),
      transport_(transport),
      fluid_(transport.fluid()),
      seconds_(seconds),
      options_(options),
      live_(sequence_.size()) {
  timeline_.rounds = sequence_;
  timeline_.round_end_s.assign(sequence_.size(), 0.0);
  timeline_.op_names.resize(sequence_.size());
}

Executor::~Executor() = default;

costmodel::Timeline Executor::run() {
  const int nodes = static_cast<int>(plan_.nodes.size());
  for (NodeId node = 0; node < nodes && !sequence_.empty(); ++node) {
    fluid_.schedule_now([this, node] { start_round(node, 0); });
  }
  fluid_.run();
  if (rounds_finished_ != sequence_.size()) {
    throw std::runtime_error("the plan cannot finish: nodes wait forever in " +
                             std::to_string(sequence_.size() - rounds_finished_) + " of " +
                             std::to_string(sequence_.size()) + " rounds");
  }
  return std::move(timeline_);
}

Executor::Round& Executor::round_at(std::size_t position) {
  if (live_[position]) return *live_[position];
  auto round = std::make_unique<Round>();
  const auto nodes = plan_.nodes.size();
  round->position = position;
  round->plan = plan_.round(sequence_[position]);
  auto& ops = round->plan.ops;
  round->next.resize(ops.size());
  round->transfers.resize(ops.size());
  std::vector<std::size_t> waits(ops.size());
  std::size_t attached = 0;
  for (std::size_t op = 0; op < ops.size(); ++op) {
    timeline_.op_names[position].push_back(ops[op].name);
    waits[op] = 1 + ops[op].after.size();  // 1: the start of the round
    attached += ops[op].detached ? 0 : 1;
    for (const OpId before : ops[op].after)
      round->next[static_cast<std::size_t>(before)].push_back(static_cast<OpId>(op));
    for (const costmodel::EarlierOp& before : ops[op].after_earlier) {
      round->after_earlier[{before.rounds_back, before.op}].push_back(static_cast<OpId>(op));
      reach_ = std::max(reach_, before.rounds_back);
    }
    if (auto* transfer = std::get_if<costmodel::Transfer>(&ops[op].what)) {
      round->transfers[op] = play(*transfer, *round, static_cast<OpId>(op));
      transfer->exchanges = {};  // only their flows are needed from here on; a large model has half a million
    }
  }
  round->waits.assign(nodes, waits);
  round->ended.assign(nodes, std::vector<char>(ops.size(), 0));
  round->start_s.assign(nodes, std::vector<double>(ops.size(), kNoPart));
  round->attached_ops.assign(nodes, attached);
  round->started.assign(nodes, 0);
  round->unfinished = nodes * ops.size();
  live_[position] = std::move(round);
  return *live_[position];
}

void Executor::start_round(NodeId node, std::size_t position) {
  Round& round = round_at(position);
  round.started[static_cast<std::size_t>(node)] = 1;
  if (position == held_rounds_ && ++nodes_past_held_rounds_ == plan_.nodes.size()) fluid_.release_changes();
  auto& waits = round.waits[static_cast<std::size_t>(node)];
  for (std::size_t op = 0; op < round.plan.ops.size(); ++op) {
    wait_for_earlier(node, round, static_cast<OpId>(op));
    if (--waits[op] == 0) start_op(node, round, static_cast<OpId>(op));
  }
}

// The operation must be in a live round. (A round that is no longer live has ended on every node.)
bool Executor::takes_part(NodeId node, const Round& round, OpId op) const {
  const auto o = static_cast<std::size_t>(op);
  if (round.transfers[o]) return round.transfers[o]->takes_part(node);
  const auto& nodes = std::get<costmodel::Compute>(round.plan.ops[o].what).nodes;
  return std::find(nodes.begin(), nodes.end(), node) != nodes.end();
}

void Executor::wait_for_earlier(NodeId node, Round& round, OpId op) {
  if (round.plan.ops[static_cast<std::size_t>(op)].after_earlier.empty() || !takes_part(node, round, op))
    return;
  for (const auto& [before, rounds_back] : round.plan.ops[static_cast<std::size_t>(op)].after_earlier) {
    if (rounds_back > static_cast<std::int64_t>(round.position)) continue;  // earlier than the first round
    const auto& earlier = live_[round.position - static_cast<std::size_t>(rounds_back)];
    if (!earlier) continue;
    if (static_cast<std::size_t>(before) >= earlier->plan.ops.size())
      continue;  // that round has fewer operations
    if (earlier->ended[static_cast<std::size_t>(node)][static_cast<std::size_t>(before)]) continue;
    ++round.waits[static_cast<std::size_t>(node)][static_cast<std::size_t>(op)];
  }
}

// A node can wait in a later round only if it has started that round. wait_for_earlier() then counted this
// operation among its predecessors.
void Executor::tell_later(NodeId node, const Round& round, OpId op) {
  for (std::int64_t back = 1; back <= reach_; ++back) {
    const std::size_t position = round.position + static_cast<std::size_t>(back);
    if (position >= live_.size()) return;
    if (!live_[position]) continue;  // not started by any node, or finished by all
    Round& later = *live_[position];
    if (!later.started[static_cast<std::size_t>(node)]) continue;
    const auto found = later.after_earlier.find({back, op});
    if (found == later.after_earlier.end()) continue;
    for (const OpId waiting : found->second) {
      if (takes_part(node, later, waiting) &&
          --later.waits[static_cast<std::size_t>(node)][static_cast<std::size_t>(waiting)] == 0)
        start_op(node, later, waiting);
    }
  }
}

std::unique_ptr<TransferRun> Executor::play(const costmodel::Transfer& transfer, Round& round, OpId op) {
  const int nodes = static_cast<int>(plan_.nodes.size());
  // The round owns the TransferRun, so the captured reference to the round stays valid.
  return std::make_unique<TransferRun>(
      lower(transfer, nodes, {options_.bundle, options_.network.ring_model, options_.pieces}), nodes,
      static_cast<std::int64_t>(round.position), options_.record_flows, transport_, timeline_,
      [this, &round, op](NodeId node) { finish_op(node, round, op); });
}

void Executor::start_op(NodeId node, Round& round, OpId op) {
  fluid_.schedule_now([this, node, &round, op] { run_op(node, round, op); });
}

void Executor::run_op(NodeId node, Round& round, OpId op) {
  const auto o = static_cast<std::size_t>(op);
  double& start_s = round.start_s[static_cast<std::size_t>(node)][o];
  start_s = fluid_.now();
  if (!takes_part(node, round, op)) {
    start_s = kNoPart;
    return finish_op(node, round, op);
  }
  if (const auto& transfer = round.transfers[o]) return transfer->start(node);
  const auto& compute = std::get<costmodel::Compute>(round.plan.ops[o].what);
  const double duration_s = seconds_(compute, node, sequence_[round.position], op);
  if (!(duration_s > 0)) return finish_op(node, round, op);
  fluid_.after(duration_s, [this, node, &round, op] { finish_op(node, round, op); });
}

void Executor::finish_op(NodeId node, Round& round, OpId op) {
  const auto n = static_cast<std::size_t>(node);
  const auto o = static_cast<std::size_t>(op);
  round.ended[n][o] = 1;
  const double end_s = fluid_.now();
  timeline_.round_end_s[round.position] = std::max(timeline_.round_end_s[round.position], end_s);
  if (round.start_s[n][o] != kNoPart) {
    const auto activity = round.transfers[o] ? costmodel::Activity::transfer : costmodel::Activity::compute;
    timeline_.intervals.push_back(
        {node, op, static_cast<std::int64_t>(round.position), activity, round.start_s[n][o], end_s});
  }
  for (const OpId next : round.next[o]) {
    if (--round.waits[n][static_cast<std::size_t>(next)] == 0) start_op(node, round, next);
  }
  const bool last = round.position + 1 == sequence_.size();
  tell_later(node, round, op);
  if (!round.plan.ops[o].detached && --round.attached_ops[n] == 0 && !last)
    start_round(node, round.position + 1);
  if (--round.unfinished == 0) {
    if (++rounds_finished_ == sequence_.size()) fluid_.stop();
    // Deferred, because the caller of this function belongs to the round.
    fluid_.schedule_now([this, position = round.position] { live_[position].reset(); });
  }
}

}  // namespace fomoe::sim
