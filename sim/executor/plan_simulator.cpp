#include "sim/executor/plan_simulator.hpp"

#include <algorithm>
#include <map>
#include <stdexcept>
#include <string>
#include <utility>

#include "costmodel/plan/absences.hpp"
#include "sim/executor/plan_simulator_round.hpp"

namespace fomoe::sim {

using costmodel::NodeId;
using costmodel::OpId;

PlanSimulator::PlanSimulator(const costmodel::Plan& plan, const Sequence& sequence, Transport& transport,
                             const ComputeSeconds& seconds, const Options& options)
    : plan_(plan),
      sequence_(sequence.rounds),
      held_rounds_(sequence.held_rounds),
      transport_(transport),
      fluid_(transport.fluid()),
      seconds_(seconds),
      options_(options),
      rules_(options.attendance),
      live_(sequence_.size()),
      finished_(sequence_.size(), 0),
      presence_(plan.nodes.size(), Presence::member),
      at_(plan.nodes.size(), 0),
      busy_(plan.nodes.size()),
      epoch_(plan.nodes.size(), 0) {
  for (std::size_t n = 0; n < plan.nodes.size(); ++n)
    if (plan.nodes[n].kind == costmodel::NodeKind::store) stores_.push_back(static_cast<NodeId>(n));
  timeline_.rounds = sequence_;
  timeline_.round_end_s.assign(sequence_.size(), 0.0);
  timeline_.op_names.resize(sequence_.size());
  if (!rules_.any()) return;
  timeline_.missed_rounds.assign(plan.nodes.size(), 0);
  timeline_.missed_steps.assign(plan.nodes.size(), 0);
}

PlanSimulator::~PlanSimulator() = default;

costmodel::Timeline PlanSimulator::run() {
  const int nodes = static_cast<int>(plan_.nodes.size());
  for (NodeId node = 0; node < nodes && !sequence_.empty(); ++node) {
    fluid_.schedule_now([this, node] { start_round(node, 0); });
  }
  schedule_outages();
  fluid_.run();
  if (rounds_finished_ != sequence_.size()) {
    throw std::runtime_error("the plan cannot finish: nodes wait forever in " +
                             std::to_string(sequence_.size() - rounds_finished_) + " of " +
                             std::to_string(sequence_.size()) + " rounds");
  }
  if (rules_.any() && !sequence_.empty()) {  // nodes that a round left out may compute until after the end
    const double end_s = *std::max_element(timeline_.round_end_s.begin(), timeline_.round_end_s.end());
    for (costmodel::Interval& interval : timeline_.intervals)
      interval.end_s = std::min(interval.end_s, end_s);
  }
  return std::move(timeline_);
}

PlanSimulator::Round& PlanSimulator::round_at(std::size_t position) {
  if (live_[position]) return *live_[position];
  auto round = std::make_unique<Round>();
  const auto nodes = plan_.nodes.size();
  round->position = position;
  round->plan = plan_.round(sequence_[position]);
  round->members.assign(nodes, 1);
  if (rules_.any()) gather_members(*round);
  auto& ops = round->plan.ops;
  round->next.resize(ops.size());
  round->transfers.resize(ops.size());
  round->first_waits.resize(ops.size());
  round->received_next.resize(ops.size());
  round->wait_to_leave.resize(ops.size());
  round->has_queues =
      std::any_of(ops.begin(), ops.end(), [](const costmodel::Op& op) { return !op.receive_after.empty(); });
  timeline_.op_names[position].clear();
  for (std::size_t op = 0; op < ops.size(); ++op) {
    timeline_.op_names[position].push_back(ops[op].name);
    round->first_waits[op] = 1 + ops[op].after.size();  // 1: the start of the round
    round->first_attached_ops += ops[op].detached ? 0 : 1;
    for (const OpId before : ops[op].after)
      round->next[static_cast<std::size_t>(before)].push_back(static_cast<OpId>(op));
    for (const costmodel::EarlierOp& before : ops[op].after_earlier) {
      round->after_earlier[{before.rounds_back, before.op}].push_back(static_cast<OpId>(op));
      reach_ = std::max(reach_, before.rounds_back);
    }
    auto* transfer = std::get_if<costmodel::Transfer>(&ops[op].what);
    for (const OpId before : ops[op].receive_after)  // only transfers have one
      for (const costmodel::Exchange& exchange : transfer->exchanges)
        round->received_next[static_cast<std::size_t>(before)].emplace_back(exchange.nodes.at(1),
                                                                            static_cast<OpId>(op));
    if (transfer == nullptr || !round->gathering.done) continue;
    round->transfers[op] = play(*transfer, *round, static_cast<OpId>(op));
    transfer->exchanges = {};  // only their flows are needed from here on; a large model has half a million
  }
  for (NodeId node = 0; node < static_cast<NodeId>(nodes); ++node)
    round->progress.waits.push_back(round->waits_at_start(node));
  round->progress.left.assign(ops.size(), 0);
  round->progress.ended.assign(nodes, std::vector<char>(ops.size(), 0));
  round->progress.start_s.assign(nodes, std::vector<double>(ops.size(), kNoPart));
  round->progress.attached_ops.assign(nodes, round->first_attached_ops);
  round->progress.unfinished =
      static_cast<std::size_t>(std::count(round->members.begin(), round->members.end(), 1)) * ops.size();
  round->started.assign(nodes, 0);
  live_[position] = std::move(round);
  return *live_[position];
}

void PlanSimulator::start_round(NodeId node, std::size_t position) {
  const auto n = static_cast<std::size_t>(node);
  // The others may have left the node out, and have finished the round, while it still received in an earlier
  // one.
  if (finished_[position] && !live_[position]) return come_back(node);
  Round& round = round_at(position);
  if (!round.members[n]) return come_back(node);
  const bool store = plan_.nodes[n].kind == costmodel::NodeKind::store;
  if (store && round.started[n]) return;  // another node has begun the round
  round.started[n] = 1;
  at_[n] = position;
  if (position == held_rounds_ && ++nodes_past_held_rounds_ == plan_.nodes.size()) fluid_.release_changes();
  for (const std::unique_ptr<SimulatedTransfer>& transfer : round.transfers)
    if (transfer) transfer->expect(node);
  auto& waits = round.progress.waits[n];
  for (std::size_t op = 0; op < round.plan.ops.size(); ++op) {
    wait_for_earlier(node, round, static_cast<OpId>(op));
    if (--waits[op] == 0) start_op(node, round, static_cast<OpId>(op));
  }
  // A store is ready for a round when the first other node begins it, even if it still sends in the one
  // before.
  for (const NodeId other : stores_) start_round(other, position);
}

// The operation must be in a live round. (A round that is no longer live has ended on every node.)
bool PlanSimulator::takes_part(NodeId node, const Round& round, OpId op) const {
  const auto o = static_cast<std::size_t>(op);
  if (round.transfers[o]) return round.transfers[o]->takes_part(node);
  return costmodel::takes_part(round.plan.ops[o], node);
}

void PlanSimulator::wait_for_earlier(NodeId node, Round& round, OpId op) {
  if (round.plan.ops[static_cast<std::size_t>(op)].after_earlier.empty() || !takes_part(node, round, op))
    return;
  for (const auto& [before, rounds_back] : round.plan.ops[static_cast<std::size_t>(op)].after_earlier) {
    if (rounds_back > static_cast<std::int64_t>(round.position)) continue;  // earlier than the first round
    const auto& earlier = live_[round.position - static_cast<std::size_t>(rounds_back)];
    if (!earlier) continue;
    if (static_cast<std::size_t>(before) >= earlier->plan.ops.size())
      continue;  // that round has fewer operations
    if (earlier->progress.ended[static_cast<std::size_t>(node)][static_cast<std::size_t>(before)]) continue;
    ++round.progress.waits[static_cast<std::size_t>(node)][static_cast<std::size_t>(op)];
  }
}

// A node can wait in a later round only if it has started that round. wait_for_earlier() then counted this
// operation among its predecessors.
void PlanSimulator::tell_later(NodeId node, const Round& round, OpId op) {
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
          --later.progress.waits[static_cast<std::size_t>(node)][static_cast<std::size_t>(waiting)] == 0)
        start_op(node, later, waiting);
    }
  }
}

std::unique_ptr<SimulatedTransfer> PlanSimulator::play(const costmodel::Transfer& transfer, Round& round,
                                                       OpId op) {
  const int nodes = static_cast<int>(plan_.nodes.size());
  // The round owns the SimulatedTransfer, so the captured reference to the round stays valid.
  return std::make_unique<SimulatedTransfer>(
      lower(transfer, nodes, {options_.bundle, options_.network.ring_model, options_.pieces}), nodes,
      static_cast<std::int64_t>(round.position), options_.record_flows, queue_of(round, op), transport_,
      timeline_, [this, &round, op](NodeId node) { finish_op(node, round, op); });
}

Queue PlanSimulator::queue_of(Round& round, OpId op) {
  if (!round.has_queues) return {};
  const auto when_first = [this, &round, op](Fluid::Callback depart) {
    round.wait_to_leave[static_cast<std::size_t>(op)].push_back(std::move(depart));
    leave_if_first(round, op);
  };
  return {when_first, [this, &round, op] { note_left(round, op); }};
}

void PlanSimulator::leave_if_first(Round& round, OpId op) {
  const auto o = static_cast<std::size_t>(op);
  for (const OpId before : round.plan.ops[o].receive_after)
    if (!round.progress.left[static_cast<std::size_t>(before)]) return;
  for (const Fluid::Callback& depart : std::exchange(round.wait_to_leave[o], {})) depart();
}

void PlanSimulator::note_left(Round& round, OpId op) {
  const auto o = static_cast<std::size_t>(op);
  if (std::exchange(round.progress.left[o], 1)) return;
  for (const auto& [receiver, next] : round.received_next[o]) leave_if_first(round, next);
}

void PlanSimulator::start_op(NodeId node, Round& round, OpId op) {
  fluid_.schedule_now([this, node, &round, op, epoch = epoch_[static_cast<std::size_t>(node)]] {
    if (epoch == epoch_[static_cast<std::size_t>(node)]) run_op(node, round, op);
  });
}

void PlanSimulator::run_op(NodeId node, Round& round, OpId op) {
  const auto n = static_cast<std::size_t>(node);
  const auto o = static_cast<std::size_t>(op);
  double& start_s = round.progress.start_s[n][o];
  start_s = fluid_.now();
  if (!takes_part(node, round, op)) {
    start_s = kNoPart;
    return finish_op(node, round, op);
  }
  if (const auto& transfer = round.transfers[o]) return transfer->start(node);
  if (std::holds_alternative<costmodel::Transfer>(round.plan.ops[o].what)) return arrive(node, round, op);
  const auto& compute = std::get<costmodel::Compute>(round.plan.ops[o].what);
  const double duration_s = seconds_(compute, node, sequence_[round.position], op);
  if (!(duration_s > 0)) return finish_op(node, round, op);
  busy_[n] = {round.position, op, start_s, start_s + duration_s};
  fluid_.after(duration_s, [this, node, &round, op, epoch = epoch_[n]] {
    if (epoch == epoch_[static_cast<std::size_t>(node)]) finish_op(node, round, op);
  });
}

void PlanSimulator::finish_op(NodeId node, Round& round, OpId op) {
  const auto n = static_cast<std::size_t>(node);
  const auto o = static_cast<std::size_t>(op);
  RoundProgress& progress = round.progress;
  progress.ended[n][o] = 1;
  if (busy_[n].position == round.position && busy_[n].op == op) busy_[n] = {};
  const double end_s = fluid_.now();
  timeline_.round_end_s[round.position] = std::max(timeline_.round_end_s[round.position], end_s);
  if (progress.start_s[n][o] != kNoPart) {
    const auto activity = round.transfers[o] ? costmodel::Activity::transfer : costmodel::Activity::compute;
    timeline_.intervals.push_back(
        {node, op, static_cast<std::int64_t>(round.position), activity, progress.start_s[n][o], end_s});
  }
  for (const OpId next : round.next[o]) {
    if (--progress.waits[n][static_cast<std::size_t>(next)] == 0) start_op(node, round, next);
  }
  for (const auto& [receiver, next] : round.received_next[o]) {
    if (receiver == node)
      note_left(round, op);  // it had no bytes, or they did not depart before they arrived
    if (receiver == node && --progress.waits[n][static_cast<std::size_t>(next)] == 0)
      start_op(node, round, next);
  }
  tell_later(node, round, op);
  if (!round.plan.ops[o].detached && --progress.attached_ops[n] == 0) end_round(node, round.position);
  if (--progress.unfinished == 0) finish_round(round);
}

void PlanSimulator::finish_round(Round& round) {
  finished_[round.position] = 1;
  if (++rounds_finished_ == sequence_.size()) fluid_.stop();
  // Deferred, because the callers belong to the round. After a failure, another round may be in its place.
  fluid_.schedule_now([this, &round, position = round.position] {
    if (live_[position].get() == &round) live_[position].reset();
  });
}

/// The node goes on with the next round, after a checkpoint if one is due.
void PlanSimulator::end_round(NodeId node, std::size_t position) {
  if (std::find(stores_.begin(), stores_.end(), node) != stores_.end()) return;  // see start_round()
  const std::size_t next = position + 1;
  if (next == sequence_.size()) return;
  const bool checkpoint = !rules_.outages.empty() && waits_for_lost_sites() && rules_.checkpoint_s > 0 &&
                          next % static_cast<std::size_t>(rules_.checkpoint_rounds) == 0;
  if (!checkpoint) return start_round(node, next);
  fluid_.after(rules_.checkpoint_s, [this, node, next, epoch = epoch_[static_cast<std::size_t>(node)]] {
    if (epoch == epoch_[static_cast<std::size_t>(node)]) start_round(node, next);
  });
}

}  // namespace fomoe::sim
