#include "costmodel/methods/model_parallel/expert_traffic.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <string>

#include "costmodel/formula/closed_form.hpp"
#include "costmodel/inputs/at_site.hpp"
#include "costmodel/model/flops.hpp"
#include "costmodel/plan/method.hpp"
#include "costmodel/plan/site_shares.hpp"
#include "platforms/support/input_error.hpp"

namespace fomoe::costmodel {

namespace {

bool all_equal(const std::vector<double>& values) {
  return std::all_of(values.begin(), values.end(), [&](double value) { return value == values.front(); });
}

Payload activation_payload(const WireFormat& format, double elements) {
  return {Content::activation, TrafficClass::activation, {}, format, std::llround(elements)};
}

class StepBuilder {
 public:
  StepBuilder(const Scenario& scenario, const ExpertTraffic& traffic, RoundPlan& round)
      : scenario_(scenario), traffic_(traffic), round_(round) {
    const FlopsPerToken flops = flops_per_token(scenario.model, static_cast<double>(scenario.model.experts),
                                                false, FlopsAccounting::mechanism);
    expert_share_ = flops.expert / flops.total();
    expert_share_of_backward_ = expert_share_of_backward(
        expert_share_, repeated_share(scenario.gpus, flops, unembedding_flops(scenario.model)));
    layers_ = static_cast<int>(scenario.model.layers);
    moe_layers_ = static_cast<int>(moe_layers(scenario.model));
    repeats_ = scenario.gpus.activation_checkpointing;
    const double mean = static_cast<double>(scenario.workload.global_batch_sequences) / scenario.sites();
    for (int site = 0; site < scenario.sites(); ++site)
      equal_part_.push_back(
          equal_part(AtSite(scenario, site).scenario().compute, mean, sequences_of_work(scenario, site)));
  }

  OpId passes() {
    for (int layer = 0; layer < layers_; ++layer) {
      const std::string name = "layer " + std::to_string(layer);
      compute_dense("forward " + name, Work::forward);
      if (!has_experts(layer)) continue;
      transfer("dispatch " + name, layer, true);
      compute_experts("experts forward " + name, Work::forward, layer);
      transfer("combine " + name, layer, false);
    }
    for (int layer = layers_ - 1; layer >= 0; --layer) {
      const std::string name = "layer " + std::to_string(layer);
      if (has_experts(layer)) {
        if (repeats_) {
          transfer("dispatch again " + name, layer, true);
          transfer("combine again " + name, layer, false);
        }
        transfer("combine backward " + name, layer, true, traffic_.stateless_experts ? 2 : 1);
        // A repeated forward pass of activation checkpointing is a part of the backward pass.
        if (traffic_.stateless_experts)
          compute_experts("experts forward again " + name, Work::forward, layer);
        compute_experts("experts backward " + name, Work::backward, layer);
        transfer("dispatch backward " + name, layer, false);
      }
      compute_dense("backward " + name, Work::backward);
    }
    return latest_.front();  // the halves compute in turn, and the last one ends last
  }

 private:
  bool has_experts(int layer) const { return moe_layer_of_layer(scenario_.model, layer).has_value(); }

  const LayerLoad& load(int layer) const {
    const auto moe_layer = static_cast<std::size_t>(*moe_layer_of_layer(scenario_.model, layer));
    return traffic_.loads[traffic_.loads.size() == 1 ? 0 : moe_layer];
  }

  // Adds one operation of a half. It waits for the half's operations before, and for the other half's
  // operation of the same kind: `chain` has the latest computations or the latest transfers.
  OpId append(int half, std::vector<OpId>& chain, Op op) {
    op.after = before(half);
    for (const OpId id : chain)
      if (std::find(op.after.begin(), op.after.end(), id) == op.after.end()) op.after.push_back(id);
    if (traffic_.halves > 1) op.name += half == 0 ? ", first half" : ", second half";
    round_.ops.push_back(std::move(op));
    return static_cast<OpId>(round_.ops.size()) - 1;
  }
  std::vector<OpId>& before(int half) { return last_[static_cast<std::size_t>(half)]; }

  // Of the FLOPs of a pass.
  double expert_share(Work work) const {
    return work == Work::backward ? expert_share_of_backward_ : expert_share_;
  }

  void compute_dense(const std::string& name, Work work) {
    const double share = (1 - expert_share(work)) / (layers_ * traffic_.halves);
    for (int half = 0; half < traffic_.halves; ++half)
      before(half) =
          latest_ = {append(half, latest_, {name, Compute{work, all_workers(scenario_), 1, share}, {}})};
  }

  // Rows that each site computes, in multiples of those of its own part of the batch. A site computes rows of
  // all sites' tokens, so that a remainder of the batch is no work of one site alone.
  [[nodiscard]] std::vector<double> computed_rows(int layer) const {
    std::vector<double> rows = load(layer).sites;
    for (int site = 0; site < scenario_.sites(); ++site)
      rows[static_cast<std::size_t>(site)] *= equal_part_[static_cast<std::size_t>(site)];
    return rows;
  }

  // Adds one operation for all sites, or one for each site if they have unequal loads.
  void compute_experts(const std::string& name, Work work, int layer) {
    const std::vector<double> rows = computed_rows(layer);
    const double share = expert_share(work) / (moe_layers_ * traffic_.halves);
    for (int half = 0; half < traffic_.halves; ++half) {
      std::vector<OpId> parts;
      if (all_equal(rows)) {
        parts = {append(half, latest_,
                        {name, Compute{work, all_workers(scenario_), 1, share * rows.front()}, {}})};
      } else {
        for (int site = 0; site < scenario_.sites(); ++site)
          parts.push_back(
              append(half, latest_,
                     {name, Compute{work, {site}, 1, share * rows[static_cast<std::size_t>(site)]}, {}}));
      }
      before(half) = latest_ = parts;
    }
  }

  // Adds the transfer of activations to the experts' sites, or back from them.
  // A row consists of `parts` activations or gradients.
  void transfer(const std::string& name, int layer, bool to_experts, int parts = 1) {
    for (int half = 0; half < traffic_.halves; ++half) {
      before(half) = sent_ = {append(half, sent_, {name, transfer_of(layer, to_experts, parts), {}})};
      if (traffic_.halves == 1) latest_ = sent_ = {};  // one chain
    }
  }

  Transfer transfer_of(int layer, bool to_experts, int parts) {
    const std::vector<double>& rows = load(layer).sites;
    const int sites = scenario_.sites();
    const WireFormat format = to_experts ? dispatch_format(scenario_.strategy) : scenario_.strategy.wire;
    const auto elements_of = [&](int site) {
      return static_cast<double>(local_batch_sequences(scenario_, site) * scenario_.model.sequence_length *
                                 traffic_.copies_per_token * scenario_.model.d_model * parts) /
             traffic_.halves;
    };
    const bool equal = all_equal(rows) && scenario_.workload.global_batch_sequences % sites == 0;
    if (equal && !traffic_.separate_requests) {
      const Exchange exchange{all_workers(scenario_),
                              {activation_payload(format, elements_of(0) * rows.front())}};
      return {Pattern::all_to_all, Collective::direct, {exchange}};
    }
    Transfer pairs{Pattern::point_to_point, Collective::direct, {}};
    for (int owner = 0; owner < sites; ++owner) {
      for (int of_token = 0; of_token < sites; ++of_token) {
        if (owner == of_token) continue;
        const double elements = elements_of(of_token) * rows[static_cast<std::size_t>(owner)] / sites;
        const std::vector<NodeId> nodes =
            to_experts ? std::vector<NodeId>{of_token, owner} : std::vector<NodeId>{owner, of_token};
        pairs.exchanges.push_back({nodes, {activation_payload(format, elements)}});
      }
    }
    return pairs;
  }

  const Scenario& scenario_;
  const ExpertTraffic& traffic_;
  RoundPlan& round_;
  std::array<std::vector<OpId>, 2> last_;  // latest operations of each half
  std::vector<OpId> latest_, sent_;        // latest computations, and the latest transfer, of both halves
  std::vector<double> equal_part_;         // [site]: see equal_part()
  double expert_share_ = 0, expert_share_of_backward_ = 0;
  bool repeats_ = false;
  int layers_ = 0, moe_layers_ = 0;
};

}  // namespace

WireFormat dispatch_format(const Strategy& strategy) {
  if (!has_axis(*strategy.method, "dispatch_dtype") || !strategy.dispatch_dtype) return strategy.wire;
  return dispatch_wire(*strategy.dispatch_dtype);
}

OpId append_expert_step(const Scenario& scenario, const ExpertTraffic& traffic, RoundPlan& round) {
  return StepBuilder(scenario, traffic, round).passes();
}

void append_dense_synchronisation(const Scenario& scenario, const std::vector<TensorGroup>& groups,
                                  OpId after, RoundPlan& round) {
  const Exchange exchange{
      all_workers(scenario),
      {make_payload(groups, Content::gradient, TrafficClass::dense, scenario.strategy.wire, {kDenseGroup})}};
  round.ops.push_back(all_reduce_op(scenario, "all-reduce dense gradients", {exchange}, {after}));
  const ParameterCounts counts = count_parameters(scenario.model);
  // Of an expert-parallel replica, a GPU updates all dense parameters and a part of the experts.
  const double experts = static_cast<double>(counts.expert) / scenario.gpus.expert_division();
  const double dense = static_cast<double>(counts.total() - counts.expert);
  Op optimizer =
      compute_op(scenario, "optimizer", Work::optimizer, 1, {static_cast<OpId>(round.ops.size()) - 1});
  std::get<Compute>(optimizer.what).share = (dense + experts / scenario.sites()) / (dense + experts);
  round.ops.push_back(std::move(optimizer));
}

Plan expert_plan(const Scenario& scenario) {
  Scenario with_whole_router = scenario;
  with_whole_router.strategy.skip_token = true;  // with it the dense group has the whole router
  Plan plan = plan_of_rounds(with_whole_router, 1);
  if (scenario.strategy.local_steps > 1)
    plan.notes.push_back("activations are sent to experts in every step, so local_steps is ignored");
  if (scenario.strategy.skip_token)
    plan.notes.push_back("tokens reach the experts of all sites, so skip_token is ignored");
  return plan;
}

void check_experts_divide(const Scenario& scenario) {
  const std::int64_t experts = scenario.model.experts;
  if (experts == 0 || scenario.model.opaque)
    throw InputError("strategy.method", "\"" + scenario.strategy.method->name + "\"",
                     "a model with experts and a known width, because activations are sent to experts",
                     "\"fsdp\"");
  const int sites = scenario.sites();
  if (experts % sites == 0) return;
  int nearest = std::max(1, static_cast<int>(std::min<std::int64_t>(sites, experts)));
  while (experts % nearest != 0) --nearest;
  throw InputError("platform.sites", std::to_string(sites),
                   "a number of sites that divides the " + std::to_string(experts) +
                       " experts of a layer, because all sites hold the same number of experts",
                   std::to_string(nearest));
}

void refuse_capacity_factor(const Strategy& strategy) {
  const double factor = strategy.capacity_factor;
  if (factor == 0) return;
  throw InputError("strategy.capacity_factor", std::to_string(factor),
                   "no capacity_factor with " + strategy.method->name + ", which has no expert buffers",
                   "method = \"expert_parallel_wan\"");
}

PlanSummary expert_traffic_summary(const Axes& axes, const Fixed& fixed, double copies_per_token,
                                   bool stateless_experts) {
  PlanSummary summary = rounds_of(axes, fixed, 1.0);
  const double others = std::min(axes.sites - 1.0, 1.0);  // 0 if there is only one site
  // Bytes to one site: tokens · copies · d / M elements.
  const double tokens = axes.global_batch_sequences * fixed.sequence_length / axes.sites;
  const double pair_elements = tokens * copies_per_token * fixed.d_model / axes.sites;
  // Half of the transfers of a layer go to the experts, and half of them come back.
  const double each_way = transfers_per_layer(fixed.activation_checkpointing) / 2.0,
               larger = stateless_experts ? 1 : 0;
  const double back = axes.bytes_per_element;
  const double there = fixed.dispatch_bytes > 0 ? fixed.dispatch_bytes : back;
  const auto add = [&](double bytes, double times) {
    Stage stage;
    stage.latency_hops = others;
    stage.bytes = fixed.busiest_rows * (axes.sites - 1.0) * bytes * pair_elements;
    stage.pair_bytes = fixed.busiest_rows * others * bytes * pair_elements;
    stage.times_per_round = times * fixed.moe_layers;
    summary.add(stage);
  };
  add(there, each_way - larger);
  add(back, each_way);
  if (stateless_experts) add(2.0 * there, 1);
  if (fixed.overlap_dispatch) {
    summary.stages.clear();
    Stage all;
    all.latency_hops = 2.0 * (2.0 * each_way + larger) * fixed.moe_layers * others;
    const double bytes = ((each_way + larger) * there + each_way * back) * pair_elements * fixed.moe_layers *
                         fixed.busiest_rows;
    all.bytes = (axes.sites - 1.0) * bytes;
    all.pair_bytes = others * bytes;
    all.hidden_forwards = all.hidden_backwards = 1.0;
    summary.add(all);
    summary.lower_bound = true;
  }
  summary.approximate = leaves_remainder(axes.global_batch_sequences, axes.sites);
  // A site with more rows than others receives more than others, and sends more back.
  summary.uneven_ports = fixed.busiest_rows > fixed.sent_rows * (1 + 1e-12);
  summary.sent.activations = fixed.moe_layers * fixed.sent_rows * (axes.sites - 1.0) * pair_elements *
                             ((each_way + larger) * there + each_way * back);

  const double dense_bytes =
      (fixed.dense_elements + fixed.expert_elements - fixed.expert_parameters) * axes.bytes_per_element;
  Stage gradients;
  gradients.latency_hops = all_reduce_hops(fixed.collective, axes.sites);
  gradients.bytes = summary.sent.dense = all_reduce_factor(axes.sites) * dense_bytes;
  gradients.pair_bytes = all_reduce_pair_factor(fixed.collective, axes.sites) * dense_bytes;
  summary.add(gradients);

  // In each layer the busiest site computes more rows than the mean, and the other sites wait for it.
  // A forward pass that experts run again takes as long as the first one.
  const double forward = forward_share(fixed.repeated_share);
  const double share =
      forward * fixed.expert_compute_share +
      (1 - forward) * expert_share_of_backward(fixed.expert_compute_share, fixed.repeated_share);
  const double passes = share + (stateless_experts ? forward * fixed.expert_compute_share : 0);
  summary.compute_factor = 1 + passes * fixed.sent_rows - share;
  summary.shared_factor = passes * fixed.sent_rows;
  summary.idle_factor = passes * (fixed.busiest_rows - fixed.sent_rows);
  // Measured passes have another share of the forward pass than the FLOPs.
  const bool rows_differ = fixed.sent_rows != 1 || fixed.busiest_rows != 1;
  if (fixed.timed_passes && (stateless_experts || (fixed.repeated_share > 0 && rows_differ)))
    summary.approximate = true;
  const double experts = fixed.expert_parameters / fixed.expert_division;
  const double dense = fixed.dense_elements + fixed.expert_elements - fixed.expert_parameters;
  summary.optimizer_factor = (dense + experts / axes.sites) / (dense + experts);
  return summary;
}

}  // namespace fomoe::costmodel
