#include "sim/executor.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>

namespace fomoe::sim {

using costmodel::Interval;
using costmodel::NodeId;
using costmodel::OpId;
namespace s4u = simgrid::s4u;

namespace {

double now() { return s4u::Engine::get_clock(); }

// A flow begins when the sender has waited out the latency and the receiver is ready for it: a rendezvous.
// Mailboxes match in order, and each (operation, lane, pair) has its own.
s4u::Mailbox* mailbox(std::size_t position, OpId op, std::size_t lane, NodeId from, NodeId to) {
  return s4u::Mailbox::by_name(std::to_string(position) + "/" + std::to_string(op) + "/" +
                               std::to_string(lane) + "/" + std::to_string(from) + ">" + std::to_string(to));
}

}  // namespace

struct Executor::Round {
  std::size_t position = 0;
  costmodel::RoundPlan plan;
  std::vector<std::vector<OpId>> next;   // operations of this round that wait for this one
  std::vector<std::vector<Lane>> lanes;  // of transfers
  std::vector<std::vector<std::size_t>>
      waits;  // [node][op]: predecessors not yet ended, the round's start among them
  std::vector<std::vector<char>> ended;   // [node][op]
  std::vector<std::size_t> attached_ops;  // [node]: unfinished operations that its next round waits for
  std::size_t unfinished = 0;             // node-operations
};

Executor::Executor(const costmodel::Plan& plan, const std::vector<std::int64_t>& rounds, Engine& engine,
                   const WorkSeconds& seconds, const Options& options)
    : plan_(plan),
      sequence_(rounds),
      engine_(engine),
      seconds_(seconds),
      options_(options),
      live_(rounds.size()) {
  timeline_.rounds = rounds;
  timeline_.round_end_s.assign(rounds.size(), 0.0);
  timeline_.sent = costmodel::PairBytes(static_cast<int>(plan.nodes.size()));
}

costmodel::Timeline Executor::run() {
  const int nodes = static_cast<int>(plan_.nodes.size());
  for (NodeId node = 0; node < nodes && !sequence_.empty(); ++node) {
    s4u::Actor::create("node", engine_.host(node), [this, node] { start_round(node, 0); });
  }
  engine_.run();
  if (rounds_finished_ != sequence_.size()) {
    throw std::runtime_error("the plan cannot finish: in " +
                             std::to_string(sequence_.size() - rounds_finished_) + " of " +
                             std::to_string(sequence_.size()) + " rounds nodes wait for ever");
  }
  return std::move(timeline_);
}

std::shared_ptr<Executor::Round> Executor::round_at(std::size_t position) {
  if (live_[position]) return live_[position];
  auto round = std::make_shared<Round>();
  const auto nodes = plan_.nodes.size();
  round->position = position;
  round->plan = plan_.round(sequence_[position]);
  const auto& ops = round->plan.ops;
  round->next.resize(ops.size());
  round->lanes.resize(ops.size());
  std::vector<std::size_t> waits(ops.size());
  std::size_t attached = 0;
  for (std::size_t op = 0; op < ops.size(); ++op) {
    waits[op] = 1 + ops[op].after.size();  // 1: the start of the round
    attached += ops[op].detached ? 0 : 1;
    for (const OpId before : ops[op].after)
      round->next[static_cast<std::size_t>(before)].push_back(static_cast<OpId>(op));
    if (const auto* transfer = std::get_if<costmodel::Transfer>(&ops[op].what)) {
      round->lanes[op] = lower(*transfer, static_cast<int>(nodes), options_.bundle);
    }
  }
  round->waits.assign(nodes, waits);
  round->ended.assign(nodes, std::vector<char>(ops.size(), 0));
  round->attached_ops.assign(nodes, attached);
  round->unfinished = nodes * ops.size();
  live_[position] = round;
  return round;
}

void Executor::start_round(NodeId node, std::size_t position) {
  const auto round = round_at(position);
  auto& waits = round->waits[static_cast<std::size_t>(node)];
  for (std::size_t op = 0; op < round->plan.ops.size(); ++op) {
    if (position > 0) wait_for_previous(node, *round, static_cast<OpId>(op));
    if (--waits[op] == 0) start_op(node, round, static_cast<OpId>(op));
  }
}

// A round that is no longer live has ended on every node, and so have its operations.
void Executor::wait_for_previous(NodeId node, Round& round, OpId op) {
  const auto& previous = live_[round.position - 1];
  if (!previous) return;
  for (const OpId before : round.plan.ops[static_cast<std::size_t>(op)].after_previous_round) {
    if (static_cast<std::size_t>(before) >= previous->plan.ops.size()) continue;  // a shorter kind of round
    if (previous->ended[static_cast<std::size_t>(node)][static_cast<std::size_t>(before)]) continue;
    ++round.waits[static_cast<std::size_t>(node)][static_cast<std::size_t>(op)];
  }
}

void Executor::start_op(NodeId node, const std::shared_ptr<Round>& round, OpId op) {
  s4u::Actor::create("op", engine_.host(node), [this, node, round, op] { run_op(node, round, op); });
}

void Executor::run_op(NodeId node, const std::shared_ptr<Round>& round, OpId op) {
  const costmodel::Op& what = round->plan.ops[static_cast<std::size_t>(op)];
  Interval interval;
  interval.node = node;
  interval.op = op;
  interval.round = static_cast<std::int64_t>(round->position);
  interval.start_s = now();
  bool takes_part = false;
  if (const auto* compute = std::get_if<costmodel::Compute>(&what.what)) {
    takes_part = std::find(compute->nodes.begin(), compute->nodes.end(), node) != compute->nodes.end();
    interval.activity = costmodel::Activity::compute;
    const double duration_s =
        takes_part ? seconds_(compute->work, node) * static_cast<double>(compute->repeat) * compute->share
                   : 0;
    if (duration_s > 0) s4u::this_actor::sleep_for(duration_s);
  } else {
    interval.activity = costmodel::Activity::transfer;
    for (const Lane& lane : round->lanes[static_cast<std::size_t>(op)]) {
      takes_part = takes_part || !lane.steps[static_cast<std::size_t>(node)].empty();
    }
    if (takes_part) run_transfer(node, round, op);
  }
  interval.end_s = now();
  if (takes_part) timeline_.intervals.push_back(interval);
  finish_op(node, round, op);
}

void Executor::run_transfer(NodeId node, const std::shared_ptr<Round>& round, OpId op) {
  const auto& lanes = round->lanes[static_cast<std::size_t>(op)];
  static char token = 0;  // what travels in the simulation is only its size

  const auto run_lane = [this, node, &round, op](std::size_t index, const Lane& lane) {
    for (const Step& step : lane.steps[static_cast<std::size_t>(node)]) {
      std::vector<s4u::CommPtr> comms;
      std::vector<std::pair<double, double>> spans;
      std::vector<void*> received(step.receives.size(), nullptr);
      for (std::size_t r = 0; r < step.receives.size(); ++r) {
        comms.push_back(
            mailbox(round->position, op, index, step.receives[r].peer, node)->get_async<void>(&received[r]));
      }
      // The sends of a step leave together, each after its own latency.
      std::vector<Flow> sends = step.sends;
      std::stable_sort(sends.begin(), sends.end(), [&](const Flow& a, const Flow& b) {
        return engine_.latency_s(node, a.peer) < engine_.latency_s(node, b.peer);
      });
      const double step_start_s = now();
      for (const Flow& send : sends) {
        const double wait_s = step_start_s + engine_.latency_s(node, send.peer) - now();
        if (wait_s > 0) s4u::this_actor::sleep_for(wait_s);
        comms.push_back(mailbox(round->position, op, index, node, send.peer)
                            ->put_async(&token, static_cast<std::uint64_t>(send.bytes)));
        timeline_.sent.at(node, send.peer) += static_cast<double>(send.bytes);
      }
      for (const auto& comm : comms) comm->wait();
      for (std::size_t c = 0; c < comms.size(); ++c) {
        const bool receive = c < step.receives.size();
        const NodeId peer = receive ? step.receives[c].peer : sends[c - step.receives.size()].peer;
        const double latency_s = receive ? engine_.latency_s(peer, node) : engine_.latency_s(node, peer);
        spans.push_back(
            {std::max(step_start_s, comms[c]->get_start_time() - latency_s), comms[c]->get_finish_time()});
      }
      record_flows(node, round->position, spans);
    }
  };

  if (lanes.size() == 1) return run_lane(0, lanes[0]);
  std::vector<s4u::ActorPtr> actors;
  for (std::size_t index = 0; index < lanes.size(); ++index) {
    if (lanes[index].steps[static_cast<std::size_t>(node)].empty()) continue;
    actors.push_back(s4u::Actor::create("lane", engine_.host(node),
                                        [&run_lane, index, &lanes] { run_lane(index, lanes[index]); }));
  }
  for (const auto& actor : actors) actor->join();
}

// Flows of one step mostly overlap: what they cover together is one or two spans.
void Executor::record_flows(NodeId node, std::size_t position, std::vector<std::pair<double, double>> spans) {
  std::sort(spans.begin(), spans.end());
  for (std::size_t i = 0; i < spans.size();) {
    auto [start_s, end_s] = spans[i++];
    for (; i < spans.size() && spans[i].first <= end_s; ++i) end_s = std::max(end_s, spans[i].second);
    timeline_.flows.push_back({node, static_cast<std::int64_t>(position), start_s, end_s});
  }
}

void Executor::finish_op(NodeId node, const std::shared_ptr<Round>& round, OpId op) {
  const auto n = static_cast<std::size_t>(node);
  const auto o = static_cast<std::size_t>(op);
  round->ended[n][o] = 1;
  double& end_s = timeline_.round_end_s[round->position];
  end_s = std::max(end_s, now());
  for (const OpId next : round->next[o]) {
    if (--round->waits[n][static_cast<std::size_t>(next)] == 0) start_op(node, round, next);
  }
  const bool last = round->position + 1 == sequence_.size();
  // Only a node that has started its next round can be waiting there; it counted this operation when it did.
  if (!last && round->attached_ops[n] == 0 && live_[round->position + 1]) {
    const auto after = live_[round->position + 1];
    for (std::size_t next = 0; next < after->plan.ops.size(); ++next) {
      const auto& list = after->plan.ops[next].after_previous_round;
      const auto waits = std::count(list.begin(), list.end(), op);
      if (waits > 0 && (after->waits[n][next] -= static_cast<std::size_t>(waits)) == 0)
        start_op(node, after, static_cast<OpId>(next));
    }
  }
  if (!round->plan.ops[o].detached && --round->attached_ops[n] == 0 && !last)
    start_round(node, round->position + 1);
  if (--round->unfinished == 0) {
    live_[round->position].reset();
    ++rounds_finished_;
  }
}

}  // namespace fomoe::sim
