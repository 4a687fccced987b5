#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "costmodel/plan/method.hpp"
#include "platforms/support/input_error.hpp"
#include "trainer/comm/wire_codec.hpp"
#include "trainer/execution/executor.hpp"

namespace fomoe::trainer {

using costmodel::Compute;
using costmodel::Content;
using costmodel::Pattern;
using costmodel::TrafficClass;
using costmodel::Transfer;
using costmodel::Work;

namespace {

[[noreturn]] void refuse_method(const std::string& got) {
  throw InputError(
      "strategy.method", got,
      "a method that fomoe-train executes: it supports sums and averages after a step or overlapped with the "
      "backward pass, reductions to a server, and expert migration, but no transfer that a forward or "
      "backward pass waits for",
      "method = \"diloco\"");
}

void check_model(const costmodel::ModelShape& shape) {
  if (trains(shape)) return;
  throw InputError(
      "model", "a model of architecture " + shape.architecture,
      "a model of the FoMoE paper's architecture, given by a preset or by shape keys, or --paced, with "
      "which `fomoe-train run` sends the bytes of any model and computes nothing",
      "preset = \"small\"");
}

void check_transfer(const costmodel::Scenario& scenario, const costmodel::Op& op, const Transfer& transfer) {
  const std::string got =
      "\"" + scenario.strategy.method->name + "\", which has the unsupported operation \"" + op.name + "\"";
  for (const costmodel::Exchange& exchange : transfer.exchanges) {
    for (const costmodel::Payload& payload : exchange.payloads) {
      if (payload.traffic == TrafficClass::data || payload.traffic == TrafficClass::checkpoint ||
          payload.traffic == TrafficClass::rejoin) {
        throw InputError("traffic", "a [traffic] table",
                         "no [traffic] table, since fomoe-train executes only the method's own transfers",
                         "a scenario without [traffic]");
      }
      if (payload.content == Content::activation || payload.content == Content::coefficient ||
          payload.content == Content::training_state || payload.content == Content::sequences ||
          payload.content == Content::key || payload.format.type == costmodel::ElementType::int32) {
        refuse_method(got);
      }
      if (payload.traffic == TrafficClass::migration && payload.groups.size() != 1) refuse_method(got);
      if (transfer.pattern == Pattern::point_to_point && payload.traffic != TrafficClass::migration)
        refuse_method(got);
      try {
        (void)WireCodec(payload.format);
      } catch (const std::invalid_argument&) {
        if (payload.format.entropy_coded)
          throw InputError("strategy.compression.entropy_coded", "true",
                           "false with fomoe-train, which sends positions as they are", "false");
        throw InputError("strategy.payload_dtype",
                         std::string(costmodel::to_string(payload.format.type)) + " with top-k compression",
                         "fp32, bf16 or fp16 with top-k compression", "payload_dtype = \"bf16\"");
      }
    }
  }
  if (transfer.pattern == Pattern::all_to_all) refuse_method(got);
}

/// Checks that every chunk that a transfer reads from PartialMeans was left there by a reduce-scatter of the
/// same round, and that an all-gather takes the chunk away.
class Chunks {
 public:
  explicit Chunks(const costmodel::Scenario& scenario) : scenario_(scenario) {}

  void check(const costmodel::Op& op, const Transfer& transfer) {
    for (const costmodel::Exchange& exchange : transfer.exchanges) {
      for (const costmodel::Payload& payload : exchange.payloads) {
        if (!from_partial(transfer, payload) && !to_partial(transfer, payload)) continue;
        for (std::size_t p = 0; p < exchange.nodes.size(); ++p) {
          const Key key{exchange.nodes[p], payload.content, payload.groups};
          const int chunk = payload.chunks > 1 ? payload.chunk : static_cast<int>(p);
          const int chunks = payload.chunks > 1 ? payload.chunks : static_cast<int>(exchange.nodes.size());
          const auto found = left_.find(key);
          const bool there = found != left_.end() && found->second == std::pair(chunk, chunks);
          const bool scatters = transfer.pattern == Pattern::reduce_scatter;
          const bool ordered =
              transfer.collective == costmodel::Collective::direct && transfer.pattern != Pattern::all_reduce;
          if (ordered || scatters == (found != left_.end()) || (!scatters && !there) ||
              (scatters && payload.chunks > 1))
            refuse_method("\"" + scenario_.strategy.method->name +
                          "\", which has the unsupported operation \"" + op.name + "\"");
          if (scatters) left_[key] = {chunk, chunks};
          if (transfer.pattern == Pattern::all_gather) left_.erase(key);
        }
        check_pieces();
      }
    }
  }

 private:
  // Cutting a payload into pieces and then chunks gives other chunks than cutting a chunk into pieces.
  void check_pieces() const {
    const costmodel::Strategy& strategy = scenario_.strategy;
    if (strategy.bucket_bytes == 0 && strategy.granularity != costmodel::Granularity::tensor) return;
    throw InputError(
        strategy.bucket_bytes > 0 ? "strategy.bucket_bytes" : "strategy.granularity",
        strategy.bucket_bytes > 0 ? std::to_string(strategy.bucket_bytes) + "B" : "\"tensor\"",
        "one call per collective, since fomoe-train does not split the chunks of hierarchical reductions",
        "collective = \"ring\"");
  }

  using Key = std::tuple<costmodel::NodeId, Content, std::vector<costmodel::GroupId>>;
  const costmodel::Scenario& scenario_;
  std::map<Key, std::pair<int, int>> left_;  // chunk number and number of chunks
};

/// Checks a step that is divided into parts: it must be one forward pass and one backward pass. The backward
/// pass pauses where gradients are sent and ends with the gradients of the embedding.
void check_parts_of_step(const costmodel::Scenario& scenario, const costmodel::Plan& plan,
                         const costmodel::RoundPlan& round) {
  constexpr double kRounding = 1e-9;
  double gradients = 0, forward = 0, backward = 0;
  std::int64_t down_to = scenario.model.layers;
  for (std::size_t id = 0; id < round.ops.size(); ++id) {
    const costmodel::Op& op = round.ops[id];
    const std::string got =
        "\"" + scenario.strategy.method->name + "\", which has the unsupported operation \"" + op.name + "\"";
    const auto* compute = std::get_if<Compute>(&op.what);
    if (compute == nullptr || compute->work == Work::outer_step) continue;
    const double share = compute->share * static_cast<double>(compute->repeat);
    switch (compute->work) {
      case Work::gradients:
        if (forward > 0) refuse_method(got);
        gradients += share;
        break;
      case Work::forward:
        if (forward > 0 || compute->repeat != 1) refuse_method(got);
        forward += share;
        break;
      case Work::backward: {
        const auto until = backward_until(plan, round, static_cast<costmodel::OpId>(id));
        if (!until || *until >= down_to || compute->repeat != 1) refuse_method(got);
        down_to = *until;
        backward += share;
        break;
      }
      case Work::optimizer:
        if (compute->share != 1 || std::abs(gradients + forward - 1) > kRounding ||
            std::abs(forward - backward) > kRounding || (forward > 0 && down_to > 0))
          refuse_method(got);
        gradients = forward = backward = 0;
        down_to = scenario.model.layers;
        break;
      default:
        if (compute->share != 1 || gradients + forward > 0) refuse_method(got);
    }
  }
  if (gradients + forward > 0)
    refuse_method("\"" + scenario.strategy.method->name +
                  "\", which computes gradients that no optimiser step uses");
}

void note_transfer(const Transfer& transfer, PlanNeeds& needs) {
  for (const costmodel::Exchange& exchange : transfer.exchanges) {
    for (const costmodel::Payload& payload : exchange.payloads) {
      needs.moments =
          needs.moments || payload.content == Content::moment1 || payload.content == Content::moment2;
      if (payload.content != Content::pseudo_gradient) continue;
      needs.residuals = needs.residuals || feeds_errors_back(payload.format);
      for (std::size_t p = 0; p < exchange.nodes.size(); ++p) {
        const bool receives_only =
            p == 0 && (transfer.pattern == Pattern::reduce || costmodel::through_store(transfer));
        if (!receives_only) needs.pseudo_gradients[static_cast<std::size_t>(exchange.nodes[p])] = true;
      }
    }
  }
}

}  // namespace

std::optional<std::int64_t> backward_until(const costmodel::Plan& plan, const costmodel::RoundPlan& round,
                                           costmodel::OpId backward) {
  std::optional<std::int64_t> lowest;
  for (const costmodel::Op& op : round.ops) {
    const auto* transfer = std::get_if<Transfer>(&op.what);
    if (transfer == nullptr || std::find(op.after.begin(), op.after.end(), backward) == op.after.end())
      continue;
    for (const costmodel::Exchange& exchange : transfer->exchanges) {
      for (const costmodel::Payload& payload : exchange.payloads) {
        if (payload.content != Content::gradient) continue;
        for (const costmodel::GroupId id : payload.groups) {
          const std::int64_t layer = plan.groups[static_cast<std::size_t>(id)].layer_begin;
          lowest = std::min(layer, lowest.value_or(layer));
        }
      }
    }
  }
  return lowest;
}

bool trains(const costmodel::ModelShape& shape) {
  const std::int64_t without_experts = shape.experts == 0 ? shape.layers : 0;
  return shape.architecture == costmodel::ModelShape{}.architecture &&
         shape.dense_layers == without_experts && !shape.opaque;
}

namespace {

/// A round of each kind. A longer run may go on from the checkpoints of this one, so that they need the state
/// of all kinds of its rounds, also of those that come later than this run's end.
std::set<std::int64_t> rounds_of_all_kinds(const costmodel::Strategy& strategy, const costmodel::Plan& plan) {
  std::set<std::int64_t> rounds = {plan.rounds - 1};
  for (const costmodel::RoundClass& kind : plan.classes) rounds.insert(kind.round_at(0));
  const std::pair<const char*, std::int64_t> periods[] = {{"global_period", strategy.global_period},
                                                          {"moment1_period", strategy.moment1_period},
                                                          {"moment2_period", strategy.moment2_period}};
  for (const auto& [axis, period] : periods) {
    if (costmodel::has_axis(*strategy.method, axis)) rounds.insert(period - 1);
  }
  return rounds;
}

}  // namespace

PlanNeeds needs_of(const costmodel::Scenario& scenario, const costmodel::Plan& plan, bool paced) {
  if (!paced) check_model(scenario.model);
  if (scenario.strategy.collective == costmodel::Collective::chain)
    throw InputError(
        "strategy.collective", "\"chain\" with fomoe-train",
        "a server that each site reaches directly, because fomoe-train passes no sums on from site to "
        "site; `fomoe simulate` predicts it",
        "collective = \"direct\"");
  PlanNeeds needs;
  needs.outer_steps.resize(plan.nodes.size(), false);
  needs.pseudo_gradients.resize(plan.nodes.size(), false);
  for (const std::int64_t index : rounds_of_all_kinds(scenario.strategy, plan)) {
    const costmodel::RoundPlan round = plan.round(index);
    Chunks chunks(scenario);
    for (const costmodel::Op& op : round.ops) {
      const std::string got = "\"" + scenario.strategy.method->name +
                              "\", which has the unsupported operation \"" + op.name + "\"";
      needs.detached = needs.detached || op.detached;
      if (!op.receive_after.empty()) refuse_method(got);
      if (const auto* transfer = std::get_if<Transfer>(&op.what)) {
        check_transfer(scenario, op, *transfer);
        chunks.check(op, *transfer);
        note_transfer(*transfer, needs);
        continue;
      }
      const auto& compute = std::get<Compute>(op.what);
      // The differences of a whole model that is still being sent would be overwritten before they are sent.
      if (!op.after_earlier.empty() && (compute.work != Work::outer_step || compute.whole_model))
        refuse_method(got);
      if (compute.work == Work::outer_step) {
        for (const costmodel::NodeId node : compute.nodes)
          needs.outer_steps[static_cast<std::size_t>(node)] = true;
      }
    }
    // Other models have other parts, and nothing is computed.
    if (trains(scenario.model)) check_parts_of_step(scenario, plan, round);
  }
  return needs;
}

}  // namespace fomoe::trainer
