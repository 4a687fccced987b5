#include "trainer/execution/executor.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <set>
#include <thread>
#include <utility>

#include "costmodel/inputs/at_site.hpp"
#include "platforms/support/input_error.hpp"
#include "trainer/device/cuda_device.hpp"
#include "trainer/execution/node_name.hpp"

namespace fomoe::trainer {

using costmodel::Activity;
using costmodel::Compute;
using costmodel::NodeId;
using costmodel::OpId;
using costmodel::Transfer;
using costmodel::Work;

namespace {

double clock_s() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

void check_restarts(const costmodel::Plan& plan, const PlanNeeds& needs) {
  const auto refuse = [](const std::string& expected) {
    throw InputError("trainer.inner_moments", "\"restart\"", expected, "inner_moments = \"keep\"");
  };
  if (needs.moments) refuse("\"keep\" with a method that averages the moments of sites");
  if (plan.steps == plan.rounds) refuse("\"keep\" with a method that synchronises after each step");
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
  options_.rate.peak = options.inner.learning_rate;
  options_.rate.steps = plan.steps;
  const PlanNeeds needs = needs_of(scenario, plan, options.paced);
  if (options.restart_moments) check_restarts(plan, needs);
  if (options.paced) pacing_.emplace(scenario_, plan_);
  for (NodeId node = 0; node < static_cast<NodeId>(plan.nodes.size()); ++node) {
    if (transport.hosts(node) && (!is_store(node) || needs.outer_steps[static_cast<std::size_t>(node)]))
      make_worker(node, needs);
  }
  zero_clock();
}

void Executor::make_worker(NodeId node, const PlanNeeds& needs) {
  const auto n = static_cast<std::size_t>(node);
  WorkerOptions worker;
  worker.model.device = options_.device;
  worker.model.dtype = options_.dtype;
  worker.model.seed = scenario_.seed;
  worker.model.constants = options_.constants;
  // The aggregator beside a store is at no site.
  const costmodel::SiteGpus& gpus =
      costmodel::gpus_of_site(scenario_, is_store(node) ? 0 : plan_.nodes[n].site);
  worker.model.activation_checkpointing = gpus.activation_checkpointing;
  worker.model.experts = expert_choice(nullptr, node, scenario_.strategy.skip_token);
  if (plan_.placement && is_worker(node)) {
    const costmodel::Placement placement = plan_.placement(0);
    worker.model.experts = expert_choice(&placement, node, scenario_.strategy.skip_token);
  }
  worker.stand_in = options_.paced && !trains(scenario_.model);
  if (worker.stand_in) worker.model.experts = {};
  worker.inner = options_.inner;
  if (options_.ranks != nullptr && gpus.sharded > 1) {
    worker.inner.shard = options_.ranks->place().rank;
    worker.inner.shards = options_.ranks->place().ranks;
  }
  if (needs.outer_steps[n]) worker.outer = options_.outer;
  worker.keeps_anchor = needs.outer_steps[n] || needs.pseudo_gradients[n];
  worker.keeps_residual = needs.residuals && needs.pseudo_gradients[n];
  worker.residual_decay = options_.residual_decay;
  Worker& made = *(workers_[node] = std::make_unique<Worker>(scenario_.model, plan_.groups, worker));
  steps_.try_emplace(node, made.model(), made.inner(),
                     RecordedStep::Options{options_.balance_weight, options_.clip_norm, options_.launches,
                                           options_.norms, options_.skip_nonfinite});
  step_[node] = 0;
}

std::vector<NodeId> Executor::hosted() const {
  std::vector<NodeId> nodes;
  for (const auto& [node, worker] : workers_) nodes.push_back(node);
  return nodes;
}

std::vector<costmodel::Interval> Executor::take_intervals(std::int64_t round) {
  const auto first =
      std::stable_partition(intervals_.begin(), intervals_.end(),
                            [&](const costmodel::Interval& interval) { return interval.round >= round; });
  std::vector<costmodel::Interval> taken(first, intervals_.end());
  intervals_.erase(first, intervals_.end());
  return taken;
}

void Executor::zero_clock() { clock_zero_ = clock_s(); }
double Executor::now_s() const { return clock_s() - clock_zero_; }

void Executor::resume_at(std::int64_t index, std::int64_t steps) {
  for (auto& [node, worker] : workers_) {
    if (!is_worker(node)) continue;
    step_[node] = steps;
    if (!plan_.placement) continue;
    const costmodel::Placement placement = plan_.placement(index);
    worker->change_experts(expert_choice(&placement, node, scenario_.strategy.skip_token));
  }
}

void Executor::run_round(std::int64_t index) {
  const auto round = std::make_shared<const costmodel::RoundPlan>(plan_.round(index));
  const auto ops = static_cast<OpId>(round->ops.size());
  round_ = index;
  if (options_.restart_moments && index > 0) {
    for (auto& [node, worker] : workers_) worker->inner().restart();
  }
  transport_.begin_round(index);
  started_.assign(round->ops.size(), false);
  done_.assign(round->ops.size(), false);
  expect_transfers(*round, index);
  for (op_ = 0; op_ < ops; ++op_) {
    const costmodel::Op& op = round->ops[static_cast<std::size_t>(op_)];
    start_ready(round, index, op_);
    if (started_[static_cast<std::size_t>(op_)]) continue;
    for (const OpId before : op.after) settle({index, before});
    for (const costmodel::EarlierOp& before : op.after_earlier)
      settle({index - before.rounds_back, before.op});
    const auto* work = std::get_if<Transfer>(&op.what);
    if (work != nullptr && !migrates(*work)) {
      start(round, {index, op_});
      continue;
    }
    work == nullptr ? compute(*round, index) : migrate(*work, index, op.name);
    done_[static_cast<std::size_t>(op_)] = true;
  }
  for (OpId id = 0; id < ops; ++id) {
    if (!round->ops[static_cast<std::size_t>(id)].detached) settle({index, id});
  }
  check_losses();
  std::erase_if(started_at_, [&](const auto& entry) { return entry.first.first < index; });
}

void Executor::note(NodeId node, const OpOfRound& which, Activity activity, double start_s, double end_s) {
  if (is_store(node)) return;  // its times are in no report
  intervals_.push_back({node, which.second, which.first, activity, start_s, end_s});
}

void Executor::note_upkeep(std::int64_t round, double start_s) {
  const double end_s = now_s();
  for (const auto& [node, worker] : workers_)
    note(node, {round, costmodel::kNoOp}, Activity::upkeep, start_s, end_s);
}

// Whether an operation after the present one has steps of the node.
bool Executor::steps_later(const costmodel::RoundPlan& plan, NodeId node) const {
  return std::any_of(plan.ops.begin() + op_ + 1, plan.ops.end(), [node](const costmodel::Op& op) {
    const auto* work = std::get_if<Compute>(&op.what);
    return work != nullptr && (work->work == Work::whole_step || work->work == Work::optimizer) &&
           std::find(work->nodes.begin(), work->nodes.end(), node) != work->nodes.end();
  });
}

void Executor::compute(const costmodel::RoundPlan& plan, std::int64_t round) {
  const costmodel::Op& op = plan.ops[static_cast<std::size_t>(op_)];
  const auto& work = std::get<Compute>(op.what);
  // Optimiser steps that the node has made since it sent what this operation merges.
  const auto trained_on = [&](NodeId node) {
    std::int64_t most = 0;
    const auto consider = [&](const OpOfRound& which) {
      const auto found = started_at_.find(which);
      if (found == started_at_.end()) return;
      const auto sent = found->second.find(node);  // a node that takes no part is in no checkpoint of it
      if (sent != found->second.end()) most = std::max(most, step_.at(node) - sent->second);
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
    if (pacing_) pace(work, node, round);
    for (std::int64_t i = 0; i < work.repeat && !pacing_; ++i) {
      if (work.work == Work::outer_step) {
        OuterRecord record{node, round, {}};
        found->second->outer_step(work.whole_model, trained_on(node) > 0 ? options_.kept_share : 0,
                                  options_.norms || last_norms_ ? &record.norms : nullptr);
        if ((options_.norms || last_norms_) && on_outer_step) on_outer_step(record);
        continue;
      }
      if (work.work != Work::optimizer) gradients(node, plan, round);
      if (!steps) continue;
      const bool last = last_norms_ && i + 1 == work.repeat && !steps_later(plan, node);
      steps_.at(node).want_norms(options_.norms || last);
      optimizer_step(node);
    }
    if (options_.device.is_cuda() && !pacing_) wait_for_device(options_.device);
    note(node, {round, op_}, Activity::compute, start_s, now_s());
  }
}

void Executor::pace(const Compute& work, NodeId node, std::int64_t round) {
  Worker& worker = *workers_.at(node);
  if (work.work != Work::outer_step && work.work != Work::optimizer) worker.zero_gradients();
  if (work.work == Work::outer_step) worker.discard_averages();
  pacing_->sleep(work, node, round, op_, [&](double seconds) {
    if (work.work != Work::whole_step && work.work != Work::optimizer) return;
    StepRecord record;
    record.node = node;
    record.round = round;
    record.step = step_.at(node)++;
    record.tokens = static_cast<std::int64_t>(plan_.nodes[static_cast<std::size_t>(node)].sequences) *
                    scenario_.model.sequence_length;
    record.time.add(seconds);
    record.routing = &routing_[node];
    if (on_step) on_step(record);
  });
}

void Executor::diverged(NodeId node, const std::string& what, bool of_step) const {
  throw Diverged(kDivergedAt + node_name(plan_, scenario_.platform, node) + ": " + what +
                 " is not finite; a lower trainer.learning_rate or trainer.clip_norm may help" +
                 (options_.skip_nonfinite || !of_step
                      ? ""
                      : ", and trainer.on_divergence=skip_step leaves out steps with such gradients"));
}

void Executor::check_losses() {
  for (const auto& [node, worker] : workers_) check_losses(node);
}

void Executor::check_losses(NodeId node) {
  const auto steps = std::exchange(unchecked_[node], {});
  for (const auto& [step, loss] : steps) {
    if (!std::isfinite(loss.item<double>())) diverged(node, "the loss of step " + std::to_string(step));
  }
}

std::int64_t Executor::micro_batch_of(NodeId node) const {
  if (scenario_.site_compute.empty()) return options_.micro_batch_sequences;
  return costmodel::gpus_of_site(scenario_, plan_.nodes[static_cast<std::size_t>(node)].site)
      .micro_batch_sequences;
}

// Computes the gradients of a whole step, or the part of it that the operation names.
void Executor::gradients(NodeId node, const costmodel::RoundPlan& plan, std::int64_t round) {
  const auto& work = std::get<Compute>(plan.ops[static_cast<std::size_t>(op_)].what);
  if (!open_pass_.contains(node)) {
    GradientPass::Part part;
    for (NodeId before = 0; before < node; ++before)
      part.first += static_cast<std::int64_t>(plan_.nodes[static_cast<std::size_t>(before)].sequences);
    part.step = step_.at(node);
    part.count = static_cast<std::int64_t>(plan_.nodes[static_cast<std::size_t>(node)].sequences);
    part.of = part.count;
    if (options_.ranks != nullptr) {
      const SitePlace& place = options_.ranks->place();
      const auto [begin, count] = part_of_rank(part.of, place.rank, place.ranks);
      part.first += begin;
      part.count = count;
    }
    part.micro_batch = micro_batch_of(node);
    Routing& routing = routing_[node];
    routing = {};
    routing.wants_balance = options_.balance_weight > 0;
    open_pass_.try_emplace(node, steps_.at(node), batches_, routing, part);
    StepRecord record;
    record.node = node;
    record.round = round;
    record.step = part.step;
    record.tokens = part.of * scenario_.model.sequence_length;
    record.time = Stopwatch(options_.device.is_cuda());
    open_step_[node] = record;
  }
  open_step_.at(node).time.start();
  GradientPass& pass = open_pass_.at(node);
  if (work.work == Work::forward) {
    std::set<std::int64_t> stops;
    for (OpId op = op_; op < static_cast<OpId>(plan.ops.size()); ++op) {
      const auto* later = std::get_if<Compute>(&plan.ops[static_cast<std::size_t>(op)].what);
      if (later != nullptr && later->work == Work::backward) stops.insert(*backward_until(plan_, plan, op));
    }
    pass.forward(stops);
  } else if (work.work == Work::backward) {
    pass.backward(*backward_until(plan_, plan, op_));
  } else {
    pass.micro_batches(/*but_the_last=*/work.share < 1);
    if (options_.ranks != nullptr) add_up_gradients(node);
  }
  open_step_.at(node).loss = pass.loss();
  if (!options_.skip_nonfinite && pass.loss().defined()) {
    auto& unchecked = unchecked_[node];  // an earlier part of the same step may have added its loss
    if (!unchecked.empty() && unchecked.back().first == step_.at(node)) unchecked.pop_back();
    unchecked.emplace_back(step_.at(node), pass.loss());
  }
  open_step_.at(node).time.stop();
}

// The loss of a process is its part of the mean over the site's sequences, and so are its gradients.
void Executor::add_up_gradients(NodeId node) {
  std::vector<at::Tensor> sums = {open_pass_.at(node).loss()};
  for (const Parameter& parameter : workers_.at(node)->model().parameters()) {
    at::Tensor& gradient = parameter.compute.mutable_grad();
    if (!gradient.defined()) gradient = at::zeros_like(parameter.master);
    sums.push_back(gradient);
  }
  options_.ranks->add_up(sums);
}

// Each process has updated its own rows of every parameter.
void Executor::share_updates(NodeId node, StepRecord& record) {
  Worker& worker = *workers_.at(node);
  if (!worker.inner().sharded() || record.skipped) return;
  std::vector<at::Tensor> masters;
  for (const Parameter& parameter : worker.model().parameters()) masters.push_back(parameter.master.detach());
  options_.ranks->share_rows(masters);
  if (options_.dtype == at::kBFloat16) worker.model().refresh_compute_weights();
  if (!record.update_norm.defined()) return;
  const at::Tensor square = record.update_norm.square();  // of this process's rows
  options_.ranks->add_up({square});
  record.update_norm = square.sqrt();
}

void Executor::open_shards() {
  for (auto& [node, worker] : workers_) {
    if (!worker->inner().sharded()) continue;
    worker->open_shards();
    std::vector<at::Tensor> moments;
    for (const auto& [name, tensor] : worker->state()) {
      if (name.ends_with(".moment1") || name.ends_with(".moment2")) moments.push_back(tensor);
    }
    options_.ranks->share_rows(moments);
  }
}

void Executor::close_shards() {
  for (auto& [node, worker] : workers_) worker->close_shards();
}

void Executor::optimizer_step(NodeId node) {
  const double rate = options_.rate.at(step_.at(node));
  StepRecord& record = open_step_.at(node);
  record.time.start();
  workers_.at(node)->inner().set_learning_rate(rate);
  record.skipped = !steps_.at(node).update();
  record.gradient_norm = steps_.at(node).gradient_norm();
  record.update_norm = record.skipped ? at::Tensor() : steps_.at(node).update_norm();
  share_updates(node, record);
  open_pass_.erase(node);
  ++step_.at(node);
  record.learning_rate = rate;
  record.time.stop();
  record.routing = &routing_.at(node);
  if (on_step) on_step(record);
}

}  // namespace fomoe::trainer
