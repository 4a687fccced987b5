// The part of PlanSimulator for rounds that may go on without some nodes (costmodel/plan/attendance.hpp).
//
// The transfers of such a round begin when it is known who takes part: when all nodes that take part in a
// transfer have arrived at one, or when a time-out has left out those that have not. This is the round's
// gathering. A site that stops while transfers are under way interrupts them: their flows end, all
// connections close, and the nodes that are left gather again. What a node began before it was left out,
// interrupted or lost is void; its epoch tells.
#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "costmodel/plan/absences.hpp"
#include "sim/executor/plan_simulator.hpp"
#include "sim/executor/plan_simulator_round.hpp"

namespace fomoe::sim {

using costmodel::NodeId;
using costmodel::OpId;

namespace {
// Nodes that are ready within this time are ready together. Equal computations end at times that differ by
// rounding errors.
constexpr double kTogether_s = 1e-6;
}  // namespace

bool PlanSimulator::waits_for_lost_sites() const { return std::isinf(rules_.drop_after_s); }
bool PlanSimulator::all_go_back() const { return waits_for_lost_sites() && !rules_.quorum; }

void PlanSimulator::schedule_outages() {
  for (const costmodel::Outage& outage : rules_.outages) {
    const auto each_node = [this, site = outage.site](void (PlanSimulator::*change)(NodeId)) {
      for (std::size_t n = 0; n < plan_.nodes.size(); ++n) {
        if (plan_.nodes[n].site == site) (this->*change)(static_cast<NodeId>(n));
      }
    };
    fluid_.after(outage.start_s, [this, each_node] {
      if (rounds_finished_ < sequence_.size()) each_node(&PlanSimulator::lose);
    });
    fluid_.after(outage.start_s + outage.duration_s, [this, each_node] {
      if (rounds_finished_ < sequence_.size()) each_node(&PlanSimulator::come_back);
    });
  }
}

void PlanSimulator::miss(std::size_t node, std::size_t position, std::int64_t count) {
  timeline_.missed_rounds[node] += count;
  timeline_.missed_steps[node] += count * costmodel::steps_of_round(plan_, sequence_[position]);
}

/// Decides who takes part in a round that begins now, and whether its transfers wait for a gathering.
void PlanSimulator::gather_members(Round& round) {
  std::vector<bool> absent(plan_.nodes.size(), false);
  for (std::size_t n = 0; n < plan_.nodes.size(); ++n) {
    if (presence_[n] == Presence::ready) {
      presence_[n] = Presence::member;
      fluid_.schedule_now([this, n, position = round.position, epoch = epoch_[n]] {
        if (epoch == epoch_[n]) start_round(static_cast<NodeId>(n), position);
      });
    }
    if (presence_[n] == Presence::member) continue;
    absent[n] = true;
    round.members[n] = 0;
    miss(n, round.position);
  }
  if (std::find(absent.begin(), absent.end(), true) != absent.end())
    round.plan = costmodel::without(std::move(round.plan), absent);
  if (all_go_back()) return;
  Gathering& gathering = round.gathering;
  gathering.attempt = ++attempts_;
  gathering.arrived.assign(plan_.nodes.size(), 0);
  gathering.expected.assign(plan_.nodes.size(), 0);
  for (const costmodel::Op& op : round.plan.ops) {
    if (!std::holds_alternative<costmodel::Transfer>(op.what)) continue;
    for (std::size_t n = 0; n < plan_.nodes.size(); ++n) {
      if (costmodel::takes_part(op, static_cast<NodeId>(n))) gathering.expected[n] = 1;
    }
  }
  gathering.done =
      std::find(gathering.expected.begin(), gathering.expected.end(), 1) == gathering.expected.end();
}

void PlanSimulator::arrive(NodeId node, Round& round, OpId op) {
  round.gathering.ready.emplace_back(node, op);
  char& arrived = round.gathering.arrived[static_cast<std::size_t>(node)];
  if (arrived) return;
  arrived = 1;
  consider(round);
}

/// Begins the transfers of the round if nobody is missing. Otherwise starts the time-outs that apply.
void PlanSimulator::consider(Round& round) {
  Gathering& gathering = round.gathering;
  if (gathering.done) return;
  std::int64_t workers = 0, ready = 0;
  bool missing = false, only_lost = true;
  for (std::size_t n = 0; n < plan_.nodes.size(); ++n) {
    if (!round.members[n] || !gathering.expected[n]) continue;
    const bool worker = plan_.nodes[n].kind == costmodel::NodeKind::worker;
    workers += worker;
    ready += worker && gathering.arrived[n];
    if (gathering.arrived[n]) continue;
    missing = true;
    only_lost = only_lost && presence_[n] != Presence::member;
  }
  if (!missing) return begin_transfers(round);
  if (rules_.quorum && ready >= std::min(*rules_.quorum, workers) && !gathering.counts_down) {
    gathering.counts_down = true;
    count_down(round, std::max(rules_.straggler_timeout_s, kTogether_s), false);
  }
  if (only_lost && !waits_for_lost_sites() && !gathering.counts_down_for_lost) {
    gathering.counts_down_for_lost = true;
    count_down(round, rules_.drop_after_s, true);
  }
}

/// After the time-out, leaves out the nodes that have not arrived; with `lost_only`, those whose site has not
/// come back.
void PlanSimulator::count_down(Round& round, double timeout_s, bool lost_only) {
  fluid_.after(timeout_s, [this, position = round.position, attempt = round.gathering.attempt, lost_only] {
    if (!live_[position] || live_[position]->gathering.done || live_[position]->gathering.attempt != attempt)
      return;
    Round& late = *live_[position];
    (lost_only ? late.gathering.counts_down_for_lost : late.gathering.counts_down) = false;
    for (std::size_t n = 0; n < plan_.nodes.size(); ++n) {
      if (!late.members[n] || !late.gathering.expected[n] || late.gathering.arrived[n]) continue;
      if (lost_only && presence_[n] != Presence::lost) continue;
      leave_out(static_cast<NodeId>(n), late);
      miss(n, late.position);
    }
    consider(late);
  });
}

void PlanSimulator::begin_transfers(Round& round) {
  std::vector<bool> absent;
  for (const char member : round.members) absent.push_back(!member);
  round.plan = costmodel::without(std::move(round.plan), absent);
  Gathering& gathering = round.gathering;
  gathering.done = true;
  gathering.before = round.progress;
  for (std::size_t op = 0; op < round.plan.ops.size(); ++op) {
    if (const auto* transfer = std::get_if<costmodel::Transfer>(&round.plan.ops[op].what))
      round.transfers[op] = play(*transfer, round, static_cast<OpId>(op));
  }
  for (const auto& [node, op] : gathering.ready) {
    SimulatedTransfer& transfer = *round.transfers[static_cast<std::size_t>(op)];
    if (!round.members[static_cast<std::size_t>(node)]) continue;
    if (transfer.takes_part(node)) {
      transfer.start(node);
    } else {  // no other owner of its experts is left
      finish_op(node, round, op);
    }
  }
}

/// The round goes on without the node. If the node still computes for it, this work is lost.
void PlanSimulator::leave_out(NodeId node, Round& round) {
  const auto n = static_cast<std::size_t>(node);
  round.members[n] = 0;
  const auto& ended = round.progress.ended[n];
  round.progress.unfinished -= static_cast<std::size_t>(std::count(ended.begin(), ended.end(), 0));
  if (presence_[n] != Presence::member || !round.started[n] || at_[n] != round.position) return;
  presence_[n] = Presence::late;
  ++epoch_[n];
  const Busy& busy = busy_[n];
  const double rest_s = busy.position == round.position ? std::max(0.0, busy.end_s - fluid_.now()) : 0;
  fluid_.after(rest_s, [this, node, n, epoch = epoch_[n]] {
    if (epoch != epoch_[n]) return;
    cut_short(node);
    if (rounds_finished_ < sequence_.size()) come_back(node);
  });
}

/// The node's site has stopped.
void PlanSimulator::lose(NodeId node) {
  const auto n = static_cast<std::size_t>(node);
  if (presence_[n] == Presence::lost) return;
  cut_short(node);
  presence_[n] = Presence::lost;
  ++epoch_[n];
  if (waits_for_lost_sites()) return go_back();
  if (!live_[at_[n]] || !live_[at_[n]]->members[n]) return;
  Round& round = *live_[at_[n]];
  if (!round.gathering.done) {
    round.gathering.arrived[n] = 0;
    std::erase_if(round.gathering.ready, [&](const auto& one) { return one.first == node; });
    return consider(round);
  }
  for (std::size_t op = 0; op < round.transfers.size(); ++op) {
    if (round.transfers[op] && round.transfers[op]->takes_part(node)) return interrupt(round);
  }
  const std::size_t before = round.progress.unfinished;
  leave_out(node, round);  // the others have what it sent
  if (before > 0 && round.progress.unfinished == 0) finish_round(round);
}

/// Ends the transfers of the round, and what nodes began after them. Its members gather again.
void PlanSimulator::interrupt(Round& round) {
  transport_.cancel_all();
  for (std::size_t later = round.position + 1; later < live_.size() && live_[later]; ++later) {
    for (std::size_t n = 0; n < plan_.nodes.size(); ++n) {
      if (!live_[later]->members[n]) {
        miss(n, later, -1);  // it is decided again
      } else if (!round.members[n] && presence_[n] == Presence::member) {
        presence_[n] = Presence::ready;
        ++epoch_[n];
      }
    }
    bury(later);
  }
  for (std::unique_ptr<SimulatedTransfer>& transfer : round.transfers) {
    if (!transfer) continue;
    transfer->abandon();
    interrupted_.push_back(std::move(transfer));
  }
  Gathering& gathering = round.gathering;
  round.progress = gathering.before;
  gathering.done = gathering.counts_down = gathering.counts_down_for_lost = false;
  gathering.attempt = ++attempts_;
  std::erase_if(gathering.ready, [&](const auto& one) {
    return presence_[static_cast<std::size_t>(one.first)] == Presence::lost;
  });
  gathering.arrived.assign(plan_.nodes.size(), 0);
  for (const auto& [node, op] : gathering.ready) gathering.arrived[static_cast<std::size_t>(node)] = 1;
  for (std::size_t n = 0; n < plan_.nodes.size(); ++n) {
    if (presence_[n] == Presence::fetching) come_back(static_cast<NodeId>(n));
    if (!round.members[n] || presence_[n] != Presence::member) continue;
    cut_short(static_cast<NodeId>(n));
    ++epoch_[n];
    at_[n] = round.position;
    // What it had begun besides the transfers begins again.
    for (std::size_t op = 0; op < round.plan.ops.size(); ++op) {
      const std::pair one{static_cast<NodeId>(n), static_cast<OpId>(op)};
      if (round.progress.waits[n][op] == 0 && !round.progress.ended[n][op] &&
          std::find(gathering.ready.begin(), gathering.ready.end(), one) == gathering.ready.end())
        start_op(one.first, round, one.second);
    }
  }
  consider(round);
}

/// Everything ends, and goes on from the last checkpoint when all sites are there again.
void PlanSimulator::go_back() {
  transport_.cancel_all();
  for (std::size_t n = 0; n < plan_.nodes.size(); ++n) {
    cut_short(static_cast<NodeId>(n));
    ++epoch_[n];
    if (presence_[n] == Presence::fetching) come_back(static_cast<NodeId>(n));  // its flow was cancelled
  }
  for (std::size_t position = 0; position < live_.size(); ++position) {
    if (live_[position]) bury(position);
  }
  const auto interval = static_cast<std::size_t>(rules_.checkpoint_rounds);
  const std::size_t checkpoint = rounds_finished_ / interval * interval;
  timeline_.repeated_rounds += static_cast<std::int64_t>(rounds_finished_ - checkpoint);
  rounds_finished_ = checkpoint;
  std::fill(finished_.begin() + static_cast<std::ptrdiff_t>(checkpoint), finished_.end(), 0);
}

/// The node fetches the training state from the first node that has it, or reads its own checkpoint if all
/// have gone back to theirs.
void PlanSimulator::come_back(NodeId node) {
  const auto n = static_cast<std::size_t>(node);
  presence_[n] = Presence::fetching;
  const std::uint32_t epoch = ++epoch_[n];
  if (all_go_back()) {
    return fluid_.after(rules_.restore_s, [this, node, n, epoch] {
      if (epoch == epoch_[n]) fetched(node);
    });
  }
  const auto bytes = static_cast<std::int64_t>(rules_.state_bytes);
  NodeId donor = -1;
  for (std::size_t d = 0; d < plan_.nodes.size() && donor < 0; ++d) {
    if (presence_[d] == Presence::member && plan_.nodes[d].kind == costmodel::NodeKind::worker)
      donor = static_cast<NodeId>(d);
  }
  if (bytes == 0 || (donor < 0 && waits_for_lost_sites())) return fetched(node);  // from its own checkpoint
  if (donor < 0)
    throw std::runtime_error("no site is left that has the training state: all are slow or have stopped at " +
                             std::to_string(fluid_.now()) +
                             " s; failures.policy = \"wait\" goes back to a checkpoint instead");
  const double start_s = fluid_.now();
  timeline_.sent.add(donor, node, static_cast<double>(bytes));
  fetches_.push_back(std::make_unique<Fetch>([this, node, n, start_s, epoch] {
    if (epoch != epoch_[n]) return;
    timeline_.flows.push_back({node, static_cast<std::int64_t>(at_[n]), start_s, fluid_.now()});
    fetched(node);
  }));
  Fetch& fetch = *fetches_.back();
  fetch.message = transport_.message(donor, node, bytes, fetch, {});
  fetch.message->offer(0);
  fetch.message->accept();
}

void PlanSimulator::fetched(NodeId node) {
  const auto n = static_cast<std::size_t>(node);
  if (all_go_back()) {  // go_back() has stopped all nodes
    presence_[n] = Presence::member;
    const bool all =
        std::all_of(presence_.begin(), presence_.end(), [](Presence one) { return one == Presence::member; });
    for (std::size_t other = 0; all && other < plan_.nodes.size(); ++other)
      start_round(static_cast<NodeId>(other), rounds_finished_);
    return;
  }
  Round* round = live_[at_[n]].get();
  if (round != nullptr && round->members[n] && !round->gathering.done) {
    presence_[n] = Presence::member;
    return begin_again(node, *round);
  }
  presence_[n] = Presence::ready;
}

/// The node does its part of the round once more.
void PlanSimulator::begin_again(NodeId node, Round& round) {
  const auto n = static_cast<std::size_t>(node);
  RoundProgress& progress = round.progress;
  progress.unfinished +=
      static_cast<std::size_t>(std::count(progress.ended[n].begin(), progress.ended[n].end(), 1));
  progress.waits[n] = round.waits_at_start(node);
  std::fill(progress.ended[n].begin(), progress.ended[n].end(), 0);
  std::fill(progress.start_s[n].begin(), progress.start_s[n].end(), kNoPart);
  progress.attached_ops[n] = round.first_attached_ops;
  start_round(node, round.position);
}

/// Ends the node's present computation, if it computes. finish_op() ends one that is not cut short.
void PlanSimulator::cut_short(NodeId node) {
  Busy& busy = busy_[static_cast<std::size_t>(node)];
  const double end_s = std::min(busy.end_s, fluid_.now());
  if (busy.start_s < end_s)
    timeline_.intervals.push_back({node, busy.op, static_cast<std::int64_t>(busy.position),
                                   costmodel::Activity::compute, busy.start_s, end_s});
  busy = {};
}

/// Takes a round that a failure ended out of use. Callbacks may still refer to it.
void PlanSimulator::bury(std::size_t position) {
  for (std::unique_ptr<SimulatedTransfer>& transfer : live_[position]->transfers)
    if (transfer) transfer->abandon();
  buried_.push_back(std::move(live_[position]));
}

}  // namespace fomoe::sim
