// Executor: starts transfers, and writes what they received into the models.
#include <algorithm>
#include <cmath>
#include <iterator>

#include "costmodel/math/spans.hpp"
#include "costmodel/plan/site_shares.hpp"
#include "trainer/comm/wire_codec.hpp"
#include "trainer/device/cuda_device.hpp"
#include "trainer/execution/executor.hpp"
#include "trainer/measurement/rehearsal.hpp"

namespace fomoe::trainer {

using costmodel::Activity;
using costmodel::Content;
using costmodel::NodeId;
using costmodel::OpId;
using costmodel::Payload;
using costmodel::TensorClass;
using costmodel::TensorGroup;
using costmodel::Transfer;

namespace {

bool has_experts(const TensorGroup& group) {
  return std::find(group.classes.begin(), group.classes.end(), TensorClass::expert) != group.classes.end();
}

// The weight of a site's gradients when sites have different numbers of sequences: the site's number divided
// by the mean over all nodes that the payload is averaged among. If the collective begins inside regions,
// these nodes are spread over several exchanges.
double weight_of(const Transfer& work, const PayloadAt& at, const std::vector<costmodel::Node>& nodes) {
  double all = 0, count = 0;
  for (const costmodel::Exchange& exchange : work.exchanges) {
    const bool same =
        std::any_of(exchange.payloads.begin(), exchange.payloads.end(), [&](const Payload& payload) {
          return payload.content == at.payload.content && payload.groups == at.payload.groups;
        });
    if (!same) continue;
    for (const NodeId node : exchange.nodes) all += nodes[static_cast<std::size_t>(node)].sequences;
    count += static_cast<double>(exchange.nodes.size());
  }
  return nodes[static_cast<std::size_t>(at.node)].sequences / (all / count);
}

}  // namespace

// Whether a prerequisite counts as done or under way depends only on the position in the plan, never on the
// clock.
bool Executor::may_start(const costmodel::RoundPlan& plan, const OpOfRound& which) {
  const costmodel::Op& op = plan.ops[static_cast<std::size_t>(which.second)];
  const auto& work = std::get<Transfer>(op.what);
  const bool earlier_rounds =
      std::none_of(op.after_earlier.begin(), op.after_earlier.end(), [&](const costmodel::EarlierOp& before) {
        return in_flight_.contains({which.first - before.rounds_back, before.op});
      });
  return earlier_rounds && std::all_of(op.after.begin(), op.after.end(), [&](OpId before) {
           if (done_[static_cast<std::size_t>(before)]) return true;
           const OpOfRound under_way{which.first, before};
           return in_flight_.contains(under_way) && !reads_result_of(work, under_way);
         });
}

// Whether `sends` reads something from the models that the transfer under way, or a transfer before it, will
// still write into them.
bool Executor::reads_result_of(const Transfer& sends, const OpOfRound& under_way) {
  const auto found = in_flight_.find(under_way);
  if (found == in_flight_.end()) return false;
  const Transfer& brings = *found->second->work;
  std::vector<bool> sent(plan_.groups.size(), false);
  for (const costmodel::Exchange& exchange : sends.exchanges) {
    for (const Payload& payload : exchange.payloads) {
      if (from_partial(sends, payload)) continue;
      for (const costmodel::GroupId id : payload.groups) sent[static_cast<std::size_t>(id)] = true;
    }
  }
  for (const costmodel::Exchange& exchange : brings.exchanges) {
    for (const Payload& payload : exchange.payloads) {
      if (to_partial(brings, payload)) continue;
      for (const costmodel::GroupId id : payload.groups) {
        if (sent[static_cast<std::size_t>(id)]) return true;
      }
    }
  }
  const costmodel::Op& op = found->second->plan->ops[static_cast<std::size_t>(under_way.second)];
  return std::any_of(op.after.begin(), op.after.end(), [&](OpId before) {
    return reads_result_of(sends, {under_way.first, before});
  });
}

void Executor::start_ready(const std::shared_ptr<const costmodel::RoundPlan>& plan, std::int64_t round,
                           OpId from) {
  for (OpId id = from; id < static_cast<OpId>(plan->ops.size()); ++id) {
    const auto* work = std::get_if<Transfer>(&plan->ops[static_cast<std::size_t>(id)].what);
    if (work == nullptr || migrates(*work) || started_[static_cast<std::size_t>(id)]) continue;
    if (may_start(*plan, {round, id})) start(plan, {round, id});
  }
}

void Executor::finish() {
  while (!in_flight_.empty()) settle(in_flight_.begin()->first);
}

void Executor::note_transfer(NodeId node, const OpOfRound& which, const std::string& name, double start_s,
                             double end_s) {
  note(node, which, Activity::transfer, start_s, end_s);
  if (!on_transfer) return;
  std::vector<costmodel::Span> computing;
  for (auto seen = intervals_.rbegin(); seen != intervals_.rend(); ++seen) {
    if (seen->node != node || seen->activity != Activity::compute || seen->start_s >= end_s) continue;
    if (seen->end_s <= start_s) break;  // a node computes one operation after another
    computing.emplace_back(std::max(seen->start_s, start_s), std::min(seen->end_s, end_s));
  }
  on_transfer({node, which.first, name, start_s, end_s, costmodel::uncovered({{start_s, end_s}}, computing)});
}

at::Tensor Executor::source(const Transfer& work, const PayloadAt& at) {
  check_losses(at.node);
  at::Tensor flat = workers_.at(at.node)->read(at.payload);
  const bool gradient = at.payload.content == Content::gradient;
  // Gradients that are not finite reach all sites, and all leave out the step. The sum of values is not
  // finite if a value is not.
  if (!(gradient && options_.skip_nonfinite) && !std::isfinite(flat.sum().item<double>()))
    diverged(at.node, gradient ? "a gradient" : "a value that it was about to send");
  if (gradient) {
    const double weight = weight_of(work, at, plan_.nodes);
    if (weight != 1) flat *= weight;
  }
  return flat;
}

// An average among sites does not end their round: it is no state that all sites agree on.
void Executor::sink(const Transfer& work, const PayloadAt& at, const at::Tensor& mean) {
  const Anchor anchor = work.pattern == costmodel::Pattern::all_reduce ? Anchor::kept : Anchor::replaced;
  workers_.at(at.node)->write(at.payload, mean, anchor);
}

TransferOptions Executor::transfer_options(const Transfer& work, std::int64_t round) {
  TransferOptions options;
  options.exact_wire = options_.exact_wire;
  options.pieces = pieces_;
  options.receives_ahead = scenario_.network.receives_ahead;
  options.partial = &partial_;
  options.round = round;
  // The state of experts that arrive waits in host memory until the change of experts has made place on a
  // GPU.
  options.device = migrates(work) ? at::Device(at::kCPU) : options_.device;
  const bool lossy = std::any_of(work.exchanges.begin(), work.exchanges.end(), [](const auto& exchange) {
    return std::any_of(exchange.payloads.begin(), exchange.payloads.end(), [](const Payload& payload) {
      return payload.content == Content::pseudo_gradient && feeds_errors_back(payload.format);
    });
  });
  if (lossy && !options_.exact_wire) {
    options.lost = [this](const PayloadAt& at, const at::Tensor& lost) {
      workers_.at(at.node)->keep_residual(at.payload, lost);
    };
  }
  return options;
}

void Executor::expect_transfers(const costmodel::RoundPlan& plan, std::int64_t round) {
  expected_.clear();
  expected_.resize(plan.ops.size());
  for (std::size_t id = 0; id < plan.ops.size(); ++id) {
    const auto* work = std::get_if<Transfer>(&plan.ops[id].what);
    if (work == nullptr) continue;
    TransferOptions options = transfer_options(*work, round);
    // the number of a transfer follows from the plan, so it is the same everywhere
    options.channel = transfers_++ % kChannels;
    expected_[id] = std::make_unique<TransferRun>(*work, transport_, options);
    expected_[id]->expect();
  }
}

void Executor::rehearse() {
  RehearsalTransport nowhere(transport_);
  PartialMeans partial;
  const costmodel::RoundPlan round = plan_.round(0);
  std::vector<std::pair<const Transfer*, std::unique_ptr<TransferRun>>> runs;
  for (auto& [node, worker] : workers_) worker->zero_gradients();
  for (const costmodel::Op& op : round.ops) {
    const auto* work = std::get_if<Transfer>(&op.what);
    if (work == nullptr || migrates(*work)) continue;
    TransferOptions options = transfer_options(*work, 0);
    options.partial = &partial;
    // a set `lost` makes the run encode, as in training
    options.lost = [](const PayloadAt&, const at::Tensor&) {};
    runs.emplace_back(work, std::make_unique<TransferRun>(*work, nowhere, options));
    runs.back().second->expect();
  }
  for (auto& [work, run] : runs) {
    run->read([this, work = work](const PayloadAt& at) { return source(*work, at); });
    run->exchange();
    run->deliver([this, work = work](const PayloadAt& at, const at::Tensor& mean) { sink(*work, at, mean); });
    run.reset();
  }
  for (auto& [node, worker] : workers_) worker->discard_averages();
}

void Executor::start(const std::shared_ptr<const costmodel::RoundPlan>& plan, const OpOfRound& which) {
  const costmodel::Op& op = plan->ops[static_cast<std::size_t>(which.second)];
  const auto& work = std::get<Transfer>(op.what);
  started_[static_cast<std::size_t>(which.second)] = true;
  auto flight = std::make_unique<InFlight>();
  flight->plan = plan;
  flight->work = &work;
  flight->start_s = now_s();
  flight->run = std::move(expected_[static_cast<std::size_t>(which.second)]);
  flight->run->read([this, &work](const PayloadAt& at) { return source(work, at); });
  std::vector<std::shared_future<void>> follows;
  for (const OpId before : op.after) {
    const auto found = in_flight_.find({which.first, before});
    if (found != in_flight_.end()) follows.push_back(found->second->done);
  }
  flight->done = background_
                     .run([this, flight = flight.get(), follows = std::move(follows)] {
                       for (const auto& before : follows) before.get();
                       if (!follows.empty()) flight->start_s = now_s();
                       flight->run->exchange();
                       if (options_.device.is_cuda()) wait_for_device(options_.device);
                       flight->end_s = now_s();
                     })
                     .share();
  // Chunks that are sent on were read by the transfer before, which started at the same place in the plan.
  started_at_[which] = step_;
  in_flight_[which] = std::move(flight);
}

void Executor::settle(OpOfRound which) {
  const auto found = in_flight_.find(which);
  if (found == in_flight_.end()) return settle_arrived(which);
  const std::unique_ptr<InFlight> flight = std::move(found->second);
  in_flight_.erase(found);
  const costmodel::Op& op = flight->plan->ops[static_cast<std::size_t>(which.second)];
  for (const OpId before : op.after) settle({which.first, before});
  flight->done.get();
  flight->run->deliver(
      [this, work = flight->work](const PayloadAt& at, const at::Tensor& mean) { sink(*work, at, mean); });
  settle_ages(*flight->work);
  if (which.first == round_) done_[static_cast<std::size_t>(which.second)] = true;
  std::vector<bool> noted(plan_.nodes.size(), false);
  for (const costmodel::Exchange& exchange : flight->work->exchanges) {
    for (const NodeId node : exchange.nodes) {
      if (!transport_.hosts(node) || is_store(node) || noted[static_cast<std::size_t>(node)]) continue;
      noted[static_cast<std::size_t>(node)] = true;
      note_transfer(node, which, op.name, flight->start_s, flight->end_s);
    }
  }
}

void Executor::settle_ages(const Transfer& work) {
  if (options_.paced && !trains(scenario_.model)) return;  // there are no experts whose moments have an age
  for (const costmodel::Exchange& exchange : work.exchanges) {
    // All owners of an expert continue with one count of the updates in its moments.
    for (const Payload& payload : exchange.payloads) {
      if (payload.content != Content::moment2 || !plan_.placement) continue;
      for (const costmodel::GroupId id : payload.groups) {
        const TensorGroup& group = plan_.groups[static_cast<std::size_t>(id)];
        if (!has_experts(group)) continue;
        std::vector<NodeId> owners;  // without the store through which they exchange
        std::copy_if(exchange.nodes.begin(), exchange.nodes.end(), std::back_inserter(owners),
                     [&](NodeId node) { return !is_store(node); });
        const double age = ages_.averaged(owners, group.layer_begin, group.expert_begin);
        for (const NodeId node : owners) {
          if (!transport_.hosts(node)) continue;
          Worker& worker = *workers_.at(node);
          const std::vector<int> local =
              local_experts(scenario_.model, worker.model().options().experts, group.layer_begin);
          const auto row = std::lower_bound(local.begin(), local.end(), group.expert_begin) - local.begin();
          std::vector<ExpertSteps> experts =
              worker.inner().experts()[static_cast<std::size_t>(group.layer_begin)];
          experts[static_cast<std::size_t>(row)].moments = age;
          worker.inner().set_experts(group.layer_begin, std::move(experts));
        }
      }
    }
  }
}

}  // namespace fomoe::trainer
