#include "trainer/executor.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <thread>
#include <utility>

#include "costmodel/spans.hpp"

namespace fomoe::trainer {

using costmodel::Activity;
using costmodel::Compute;
using costmodel::Content;
using costmodel::NodeId;
using costmodel::NodeKind;
using costmodel::OpId;
using costmodel::Payload;
using costmodel::TensorClass;
using costmodel::TensorGroup;
using costmodel::Transfer;
using costmodel::Work;

namespace {

double clock_s() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

bool has_experts(const TensorGroup& group) {
  return std::find(group.classes.begin(), group.classes.end(), TensorClass::expert) != group.classes.end();
}

// Sites whose gradients are means over different numbers of sequences count accordingly.
double weight_of(const PayloadAt& at, const std::vector<costmodel::Node>& nodes) {
  double all = 0;
  for (const NodeId node : at.exchange.nodes) all += nodes[static_cast<std::size_t>(node)].sequences;
  const double mean = all / static_cast<double>(at.exchange.nodes.size());
  return nodes[static_cast<std::size_t>(at.node)].sequences / mean;
}

void clip_gradients(const Model& model, double norm) {
  const at::NoGradGuard no_grad;
  at::Tensor square;
  for (const Parameter& parameter : model.parameters()) {
    const at::Tensor gradient = parameter.compute.grad();
    if (!gradient.defined()) continue;
    const at::Tensor part = gradient.to(parameter.master.scalar_type()).square().sum();
    square = square.defined() ? square + part : part;
  }
  if (!square.defined()) return;
  const at::Tensor scale = (norm / (square.sqrt() + 1e-6)).clamp_max(1.0);
  for (const Parameter& parameter : model.parameters()) {
    if (parameter.compute.grad().defined()) parameter.compute.mutable_grad().mul_(scale);
  }
}

}  // namespace

Executor::Executor(const costmodel::Scenario& scenario, const costmodel::Plan& plan, Transport& transport,
                   Batches& batches, const TrainingOptions& options)
    : scenario_(scenario),
      plan_(plan),
      transport_(transport),
      batches_(batches),
      options_(options),
      ages_(static_cast<int>(plan.nodes.size()), scenario.model.layers, scenario.model.experts,
            options.inner.beta2),
      pieces_(costmodel::pieces_of(scenario, plan)),
      background_(transport.concurrent() ? kChannels : 1) {
  const PlanNeeds needs = needs_of(scenario, plan);
  if (options.paced) pace_.emplace(scenario_, plan_);
  for (NodeId node = 0; node < static_cast<NodeId>(plan.nodes.size()); ++node) {
    if (transport.hosts(node)) make_worker(node, needs);
  }
  zero_clock();
}

void Executor::make_worker(NodeId node, const PlanNeeds& needs) {
  const auto n = static_cast<std::size_t>(node);
  WorkerOptions worker;
  worker.model.device = options_.device;
  worker.model.dtype = options_.dtype;
  worker.model.seed = scenario_.seed;
  worker.model.experts = expert_choice(nullptr, node, scenario_.strategy.skip_token);
  if (plan_.placement && plan_.nodes[n].kind == NodeKind::worker) {
    const costmodel::Placement placement = plan_.placement(0);
    worker.model.experts = expert_choice(&placement, node, scenario_.strategy.skip_token);
  }
  worker.inner = options_.inner;
  if (needs.outer_steps[n]) worker.outer = options_.outer;
  worker.keeps_anchor = needs.outer_steps[n] || needs.pseudo_gradients[n];
  worker.keeps_residual = needs.residuals && needs.pseudo_gradients[n];
  workers_[node] = std::make_unique<Worker>(scenario_.model, plan_.groups, worker);
  step_[node] = 0;
}

std::vector<NodeId> Executor::hosted() const {
  std::vector<NodeId> nodes;
  for (const auto& [node, worker] : workers_) nodes.push_back(node);
  return nodes;
}

void Executor::zero_clock() { clock_zero_ = clock_s(); }
double Executor::now_s() const { return clock_s() - clock_zero_; }

void Executor::resume_at(std::int64_t index, std::int64_t steps) {
  for (auto& [node, worker] : workers_) {
    step_[node] = steps;
    if (!plan_.placement || plan_.nodes[static_cast<std::size_t>(node)].kind != NodeKind::worker) continue;
    const costmodel::Placement placement = plan_.placement(index);
    worker->change_experts(expert_choice(&placement, node, scenario_.strategy.skip_token));
  }
}

/// A transfer under way, with the plan that it is of.
struct Executor::InFlight {
  std::shared_ptr<const costmodel::RoundPlan> plan;
  const Transfer* work = nullptr;
  std::unique_ptr<TransferRun> run;
  double start_s = 0, end_s = 0;
  std::future<void> done;
};

Executor::~Executor() = default;

void Executor::warm_up() {
  for (auto& [node, worker] : workers_) worker->zero_gradients();
  const costmodel::RoundPlan round = plan_.round(0);
  for (const costmodel::Op& op : round.ops) {
    const auto* work = std::get_if<Transfer>(&op.what);
    if (work == nullptr) continue;
    TransferOptions options = transfer_options(*work);
    options.lost = [](const PayloadAt&, const at::Tensor&, const at::Tensor&) {};  // so that it is encoded
    TransferRun(*work, transport_, options).read([this](const PayloadAt& at) { return source(at); });
  }
}

void Executor::run_round(std::int64_t index) {
  const auto round = std::make_shared<const costmodel::RoundPlan>(plan_.round(index));
  const auto ops = static_cast<OpId>(round->ops.size());
  round_ = index;
  started_.assign(round->ops.size(), false);
  done_.assign(round->ops.size(), false);
  expect_transfers(*round);
  for (op_ = 0; op_ < ops; ++op_) {
    const costmodel::Op& op = round->ops[static_cast<std::size_t>(op_)];
    start_ready(round, index, op_);
    for (const OpId before : op.after) settle({index, before});
    for (const costmodel::EarlierOp& before : op.after_earlier)
      settle({index - before.rounds_back, before.op});
    const auto* work = std::get_if<Transfer>(&op.what);
    if (work == nullptr || migrates(*work)) {
      work == nullptr ? compute(op, index) : migrate(*work, index, op.name);
      done_[static_cast<std::size_t>(op_)] = true;
    } else if (!started_[static_cast<std::size_t>(op_)]) {
      start(round, {index, op_});
    }
  }
  for (OpId id = 0; id < ops; ++id) {
    if (!round->ops[static_cast<std::size_t>(id)].detached) settle({index, id});
  }
  std::erase_if(started_at_, [&](const auto& entry) { return entry.first.first < index; });
}

// Whether a prerequisite is done depends on the place in the plan alone, never on the clock.
void Executor::start_ready(const std::shared_ptr<const costmodel::RoundPlan>& plan, std::int64_t round,
                           OpId from) {
  for (OpId id = from; id < static_cast<OpId>(plan->ops.size()); ++id) {
    const costmodel::Op& op = plan->ops[static_cast<std::size_t>(id)];
    const auto* work = std::get_if<Transfer>(&op.what);
    if (work == nullptr || migrates(*work) || started_[static_cast<std::size_t>(id)]) continue;
    const bool ready =
        std::all_of(op.after.begin(), op.after.end(),
                    [&](OpId before) { return done_[static_cast<std::size_t>(before)]; }) &&
        std::none_of(op.after_earlier.begin(), op.after_earlier.end(), [&](const auto& before) {
          return in_flight_.contains({round - before.rounds_back, before.op});
        });
    if (ready) start(plan, {round, id});
  }
}

void Executor::finish() {
  while (!in_flight_.empty()) settle(in_flight_.begin()->first);
}

void Executor::note(NodeId node, const OpOfRound& which, Activity activity, double start_s, double end_s) {
  intervals_.push_back({node, which.second, which.first, activity, start_s, end_s});
}

void Executor::note_transfer(NodeId node, const OpOfRound& which, const std::string& name, double start_s,
                             double end_s) {
  note(node, which, Activity::transfer, start_s, end_s);
  if (!on_transfer) return;
  std::vector<costmodel::Span> computing;
  for (auto seen = intervals_.rbegin(); seen != intervals_.rend(); ++seen) {
    if (seen->node != node || seen->activity != Activity::compute || seen->start_s >= end_s) continue;
    if (seen->end_s <= start_s) break;  // a node computes one thing after another
    computing.emplace_back(std::max(seen->start_s, start_s), std::min(seen->end_s, end_s));
  }
  on_transfer({node, which.first, name, start_s, end_s, costmodel::uncovered({{start_s, end_s}}, computing)});
}

void Executor::compute(const costmodel::Op& op, std::int64_t round) {
  const auto& work = std::get<Compute>(op.what);
  // How far the node has trained on since it sent what this operation merges.
  const auto trained_on = [&](NodeId node) {
    std::int64_t most = 0;
    const auto consider = [&](const OpOfRound& which) {
      const auto found = started_at_.find(which);
      if (found != started_at_.end()) most = std::max(most, step_.at(node) - found->second.at(node));
    };
    for (const OpId before : op.after) consider({round, before});
    for (const costmodel::EarlierOp& before : op.after_earlier)
      consider({round - before.rounds_back, before.op});
    return most;
  };
  for (const NodeId node : work.nodes) {
    const bool steps = work.work == Work::whole_step || work.work == Work::optimizer;
    if (steps) ages_.trained(node, work.repeat);
    const auto found = workers_.find(node);
    if (found == workers_.end()) continue;
    const double start_s = now_s();
    if (pace_) pace(work, node, round);
    for (std::int64_t i = 0; i < work.repeat && !pace_; ++i) {
      if (work.work == Work::whole_step || work.work == Work::gradients) gradients(node, round);
      if (steps) optimizer_step(node);
      if (work.work == Work::outer_step)
        found->second->outer_step(work.whole_model, trained_on(node) > 0 ? options_.kept_share : 0);
    }
    note(node, {round, op_}, Activity::compute, start_s, now_s());
  }
}

// Sleeps until each step's end by the clock of the operation's start, so that late wake-ups do not add up.
void Executor::pace(const Compute& work, NodeId node, std::int64_t round) {
  const double seconds = pace_->of(work, node, round, op_);
  const auto start = std::chrono::steady_clock::now();
  Worker& worker = *workers_.at(node);
  if (work.work == Work::whole_step || work.work == Work::gradients) worker.zero_gradients();
  if (work.work == Work::outer_step) worker.discard_averages();
  for (std::int64_t i = 0; i < work.repeat; ++i) {
    const double until_s = seconds * static_cast<double>(i + 1) / static_cast<double>(work.repeat);
    std::this_thread::sleep_until(start + std::chrono::duration<double>(until_s));
    if (work.work != Work::whole_step && work.work != Work::optimizer) continue;
    StepRecord record;
    record.node = node;
    record.round = round;
    record.step = step_.at(node)++;
    record.loss = std::numeric_limits<double>::quiet_NaN();
    record.tokens = static_cast<std::int64_t>(plan_.nodes[static_cast<std::size_t>(node)].sequences) *
                    scenario_.model.sequence_length;
    record.seconds = seconds / static_cast<double>(work.repeat);
    record.routing = &routing_[node];
    if (on_step) on_step(record);
  }
}

// Mean loss of the node's sequences: L = Σ_b (sequences of micro-batch b ÷ sequences of the node)·L_b.
void Executor::gradients(NodeId node, std::int64_t round) {
  const double start_s = now_s();
  Model& model = workers_.at(node)->model();
  std::int64_t first = 0;
  for (NodeId before = 0; before < node; ++before)
    first += static_cast<std::int64_t>(plan_.nodes[static_cast<std::size_t>(before)].sequences);
  const auto count = static_cast<std::int64_t>(plan_.nodes[static_cast<std::size_t>(node)].sequences);
  const std::int64_t most = options_.micro_batch_sequences > 0 ? options_.micro_batch_sequences : count;

  StepRecord record;
  record.node = node;
  record.round = round;
  record.step = step_.at(node);
  record.tokens = count * scenario_.model.sequence_length;
  Routing& routing = routing_[node];
  routing = {};
  routing.wants_balance = options_.balance_weight > 0;
  for (std::int64_t begin = 0; begin < count; begin += most) {
    const std::int64_t size = std::min(most, count - begin);
    const Batch batch = batches_.of_step(record.step, first + begin, size);
    routing.balance.reset();
    at::Tensor loss =
        model.loss(batch.tokens.to(options_.device), batch.targets.to(options_.device), &routing);
    const double share = static_cast<double>(size) / static_cast<double>(count);
    record.loss += share * loss.item<double>();
    if (routing.wants_balance) loss = loss + options_.balance_weight * routing.balance;
    (size == count ? loss : loss * share).backward();
  }
  routing.balance.reset();
  record.seconds = now_s() - start_s;
  open_step_[node] = record;
}

void Executor::optimizer_step(NodeId node) {
  const double start_s = now_s();
  Worker& worker = *workers_.at(node);
  if (options_.clip_norm > 0) clip_gradients(worker.model(), options_.clip_norm);
  const auto step = static_cast<double>(step_.at(node));
  const auto warmup = static_cast<double>(options_.warmup_steps);
  const double rate = options_.inner.learning_rate * (warmup > 0 ? std::min(1.0, (step + 1) / warmup) : 1.0);
  worker.inner().set_learning_rate(rate);
  worker.inner().step();
  ++step_.at(node);
  StepRecord& record = open_step_.at(node);
  record.learning_rate = rate;
  record.seconds += now_s() - start_s;
  record.routing = &routing_.at(node);
  if (on_step) on_step(record);
}

at::Tensor Executor::source(const PayloadAt& at) {
  at::Tensor flat = workers_.at(at.node)->read(at.payload);
  if (at.payload.content == Content::gradient) {
    const double weight = weight_of(at, plan_.nodes);
    if (weight != 1) flat *= weight;
  }
  return flat;
}

void Executor::sink(const PayloadAt& at, const at::Tensor& mean) {
  workers_.at(at.node)->write(at.payload, mean);
}

TransferOptions Executor::transfer_options(const Transfer& work) {
  TransferOptions options;
  options.exact_wire = options_.exact_wire;
  options.pieces = pieces_;
  const bool lossy = std::any_of(work.exchanges.begin(), work.exchanges.end(), [](const auto& exchange) {
    return std::any_of(exchange.payloads.begin(), exchange.payloads.end(), [](const Payload& payload) {
      return payload.content == Content::pseudo_gradient &&
             (payload.format.sparse() || payload.format.block_elements > 0);
    });
  });
  if (lossy && !options_.exact_wire) {
    options.lost = [this](const PayloadAt& at, const at::Tensor& sent, const at::Tensor& read) {
      workers_.at(at.node)->keep_residual(at.payload, sent - read);
    };
  }
  return options;
}

void Executor::expect_transfers(const costmodel::RoundPlan& round) {
  expected_.clear();
  expected_.resize(round.ops.size());
  for (std::size_t id = 0; id < round.ops.size(); ++id) {
    const auto* work = std::get_if<Transfer>(&round.ops[id].what);
    if (work == nullptr) continue;
    TransferOptions options = transfer_options(*work);
    options.channel = transfers_++ % kChannels;  // transfers are numbered by the plan, the same everywhere
    expected_[id] = std::make_unique<TransferRun>(*work, transport_, options);
    expected_[id]->expect();
  }
}

void Executor::start(const std::shared_ptr<const costmodel::RoundPlan>& plan, const OpOfRound& which) {
  const auto& work = std::get<Transfer>(plan->ops[static_cast<std::size_t>(which.second)].what);
  started_[static_cast<std::size_t>(which.second)] = true;
  auto flight = std::make_unique<InFlight>();
  flight->plan = plan;
  flight->work = &work;
  flight->start_s = now_s();
  flight->run = std::move(expected_[static_cast<std::size_t>(which.second)]);
  flight->run->read([this](const PayloadAt& at) { return source(at); });
  flight->done = background_.run([this, flight = flight.get()] {
    flight->run->exchange();
    flight->end_s = now_s();
  });
  started_at_[which] = step_;
  in_flight_[which] = std::move(flight);
}

void Executor::settle(const OpOfRound& which) {
  const auto found = in_flight_.find(which);
  if (found == in_flight_.end()) return;
  const std::unique_ptr<InFlight> flight = std::move(found->second);
  in_flight_.erase(found);
  flight->done.get();
  flight->run->deliver([this](const PayloadAt& at, const at::Tensor& mean) { sink(at, mean); });
  settle_ages(*flight->work);
  if (which.first == round_) done_[static_cast<std::size_t>(which.second)] = true;
  std::vector<bool> noted(plan_.nodes.size(), false);
  for (const costmodel::Exchange& exchange : flight->work->exchanges) {
    for (const NodeId node : exchange.nodes) {
      if (!transport_.hosts(node) || noted[static_cast<std::size_t>(node)]) continue;
      noted[static_cast<std::size_t>(node)] = true;
      note_transfer(node, which, flight->plan->ops[static_cast<std::size_t>(which.second)].name,
                    flight->start_s, flight->end_s);
    }
  }
}

void Executor::settle_ages(const Transfer& work) {
  for (const costmodel::Exchange& exchange : work.exchanges) {
    // All owners of an expert go on with one count of what its moments hold.
    for (const Payload& payload : exchange.payloads) {
      if (payload.content != Content::moment2 || !plan_.placement) continue;
      for (const costmodel::GroupId id : payload.groups) {
        const TensorGroup& group = plan_.groups[static_cast<std::size_t>(id)];
        if (!has_experts(group)) continue;
        const double age = ages_.averaged(exchange.nodes, group.layer_begin, group.expert_begin);
        for (const NodeId node : exchange.nodes) {
          if (!transport_.hosts(node)) continue;
          Worker& worker = *workers_.at(node);
          const std::vector<int> local =
              local_experts(scenario_.model, worker.model().options().experts, group.layer_begin);
          const auto row = std::lower_bound(local.begin(), local.end(), group.expert_begin) - local.begin();
          worker.inner()
              .experts()[static_cast<std::size_t>(group.layer_begin)][static_cast<std::size_t>(row)]
              .moments = age;
        }
      }
    }
  }
}

}  // namespace fomoe::trainer
