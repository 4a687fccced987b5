// Pipeline parallelism across the WAN: each of the M sites is one stage and keeps 1/M of the layers, in
// order. The global batch passes all stages in n micro-batches. Activations go to the next stage, and
// gradients of activations go back.
//
// f and b are a stage's forward and backward time of one micro-batch. t is the transfer time of a
// micro-batch's activations, which are B_g/n · s · d elements: B_g sequences in the global batch, s tokens in
// a sequence, and width d; t = l + w, with the latency l and the time w of the bytes on the link. Sends do
// not wait for acknowledgements: the bytes of a micro-batch arrive right behind those of the one before, so
// that the latency is paid once for a queue. With equal stages and equal channels, a step takes
//   gpipe  M(f + b) + 2(M−1)·t + (n−1)·[max(f, w) + max(b, w)]
//   1f1b   ≥ (q+1)·R + (n−1−q·M)·max(f + b, w),   R = M(f + b) + 2(M−1)·t,  q = ⌊(n−1)/M⌋
// gpipe makes all forward passes, then all backward passes. With 1f1b, stage i (from 0) starts M−i
// micro-batches and then a new one after each backward pass (PipeDream-Flush, Narayanan et al. 2021): it
// keeps the activations of min(n, M−i) micro-batches instead of n, but a micro-batch must return before
// another one may start, so that M micro-batches take a round trip R. Waiting at one stage causes more
// waiting at others, so that this is a lower bound; the simulation follows each stage. If t = 0, both
// schedules take (n + M − 1)(f + b), and the bubble is (M−1)/n of the computation.
//
// With stage_sites = W, each stage has W consecutive sites, and there are W pipelines of P = M/W stages, each
// with 1/W of the batch: B_g, M and n above are then those of a pipeline. The sites of a stage all-reduce its
// gradients after their last backward pass. With equal sites, this is also the mean of SWARM, in which each
// micro-batch takes any free site of the next stage.
//
// A tied embedding is also the unembedding, so the sites of the first and the last stage all-reduce its
// gradient in every step (Megatron-LM, Narayanan et al. 2021). With activation checkpointing, a stage keeps
// the inputs of its layers and repeats their forward passes (as Varuna does). Assumption: layers are divided
// so that all stages take equally long.
#include <algorithm>
#include <string>

#include "costmodel/methods/all.hpp"
#include "costmodel/plan/building_blocks.hpp"
#include "platforms/support/input_error.hpp"

namespace fomoe::costmodel {

namespace {

class Schedule {
 public:
  explicit Schedule(const Scenario& scenario)
      : scenario_(scenario),
        stage_sites_(scenario.strategy.stage_sites),
        stages_(scenario.sites() / stage_sites_),
        micro_batches_(static_cast<int>(scenario.strategy.micro_batches)) {}

  RoundPlan round(const std::vector<TensorGroup>& groups, GroupId tied_table) {
    stage_order_ = orders();
    std::vector<OpId> before;
    for (pipeline_ = 0; pipeline_ < stage_sites_; ++pipeline_) {
      add_in_order();
      before.insert(before.end(), computed_.begin(), computed_.end());
    }
    if (stage_sites_ > 1)
      before = {add(
          all_reduce_op(scenario_, "all-reduce gradients of each stage", stage_gradients(groups), before))};
    if (groups[static_cast<std::size_t>(tied_table)].elements > 0 && scenario_.sites() > 1) {
      Exchange exchange{{},
                        {make_payload(groups, Content::gradient, TrafficClass::dense, scenario_.strategy.wire,
                                      {tied_table})}};
      for (int i = 0; i < stage_sites_; ++i) exchange.nodes.push_back(i);
      for (int i = std::max(stage_sites_, scenario_.sites() - stage_sites_); i < scenario_.sites(); ++i)
        exchange.nodes.push_back(i);
      before = {add(all_reduce_op(scenario_, "all-reduce embedding gradients", {exchange}, before))};
    }
    Op optimizer = compute_op(scenario_, "optimizer", Work::optimizer, 1, before);
    std::get<Compute>(optimizer.what).share = 1.0 / stages_;
    add(std::move(optimizer));
    return std::move(round_);
  }

 private:
  OpId add(Op op) {
    round_.ops.push_back(std::move(op));
    return static_cast<OpId>(round_.ops.size()) - 1;
  }
  [[nodiscard]] NodeId node(int stage) const { return stage * stage_sites_ + pipeline_; }

  // The gradients of each stage, except those of a tied table. Untied tables are at the two ends.
  [[nodiscard]] std::vector<Exchange> stage_gradients(const std::vector<TensorGroup>& groups) const {
    const auto layers = static_cast<int>(scenario_.model.layers);
    std::vector<Exchange> exchanges;
    for (int stage = 0; stage < stages_; ++stage) {
      std::vector<int> of_stage;
      for (int layer = stage * layers / stages_; layer < (stage + 1) * layers / stages_; ++layer)
        of_stage.push_back(layer);
      const bool input_table = stage == 0 && !scenario_.model.tied_embeddings;
      Exchange& exchange = exchanges.emplace_back(
          layers_exchange(scenario_, groups, Content::gradient, of_stage, input_table));
      if (stage + 1 == stages_ && !scenario_.model.tied_embeddings) {
        Payload& dense = exchange.payloads.front();
        dense.groups.push_back(head_group_of(groups));
        dense.elements += groups[static_cast<std::size_t>(dense.groups.back())].elements;
      }
      exchange.nodes.clear();
      for (int i = 0; i < stage_sites_; ++i) exchange.nodes.push_back(stage * stage_sites_ + i);
    }
    return exchanges;
  }
  // An untied unembedding is the last group but one; the tied table, here empty, is the last one.
  static GroupId head_group_of(const std::vector<TensorGroup>& groups) {
    return static_cast<GroupId>(groups.size()) - 2;
  }

  struct Pass {
    bool forward;
    int micro_batch;
  };

  // The passes of each stage in their order.
  [[nodiscard]] std::vector<std::vector<Pass>> orders() const {
    std::vector<std::vector<Pass>> all;
    for (int stage = 0; stage < stages_; ++stage) {
      std::vector<Pass>& order = all.emplace_back();
      const bool one_by_one = scenario_.strategy.schedule == PipelineSchedule::one_f_one_b;
      const int ahead = one_by_one ? std::min(micro_batches_, stages_ - stage) : micro_batches_;
      for (int i = 0; i < ahead; ++i) order.push_back({true, i});
      for (int i = 0; i < micro_batches_; ++i) {
        order.push_back({false, i});
        if (ahead + i < micro_batches_) order.push_back({true, ahead + i});
      }
    }
    return all;
  }

  // Adds the passes of all stages so that each one comes after the pass whose result it needs.
  void add_in_order() {
    const auto stages = static_cast<std::size_t>(stages_),
               micro_batches = static_cast<std::size_t>(micro_batches_);
    for (auto* arrived : {&activations_, &gradients_})
      arrived->assign(stages, std::vector<OpId>(micro_batches, -1));
    computed_.assign(stages, -1);
    forward_channel_.assign(stages, -1);
    backward_channel_.assign(stages, -1);
    std::vector<std::size_t> next(stages, 0);
    for (bool any = true; any;) {
      any = false;
      for (std::size_t s = 0; s < stages; ++s) {
        while (next[s] < stage_order_[s].size() && add_pass(static_cast<int>(s), stage_order_[s][next[s]])) {
          ++next[s];
          any = true;
        }
      }
    }
  }

  // A stage computes a micro-batch when it has arrived and the previous one is done; the micro-batch then
  // leaves behind the one before. An operation ends at once on nodes that do not take part in it, so a chain
  // of operations orders only the work of the stage itself. Returns false if the micro-batch has not been
  // sent yet.
  bool add_pass(int stage, const Pass& pass) {
    const auto s = static_cast<std::size_t>(stage), i = static_cast<std::size_t>(pass.micro_batch);
    const bool first = pass.forward ? stage == 0 : stage == stages_ - 1;
    const OpId arrived = (pass.forward ? activations_ : gradients_)[s][i];
    if (!first && arrived < 0) return false;
    std::string label = (pass.forward ? "forward " : "backward ") + std::to_string(pass.micro_batch);
    if (stage_sites_ > 1) label += " of pipeline " + std::to_string(pipeline_);
    const std::int64_t batch =
        chunk_elements(scenario_.workload.global_batch_sequences, stage_sites_, pipeline_);
    const std::int64_t sequences = chunk_elements(batch, micro_batches_, pass.micro_batch);
    // A step of a site's share of the batch through all layers has as much work as the pipeline's batch
    // through the stage's layers.
    const double share = static_cast<double>(sequences * stage_sites_) /
                         static_cast<double>(scenario_.workload.global_batch_sequences);
    std::vector<OpId> after;
    if (arrived >= 0) after.push_back(arrived);
    if (computed_[s] >= 0) after.push_back(computed_[s]);
    computed_[s] =
        add({label + " of stage " + std::to_string(stage),
             Compute{pass.forward ? Work::forward : Work::backward, {node(stage)}, 1, share}, after});
    const int to = stage + (pass.forward ? 1 : -1);
    if (to < 0 || to == stages_) return true;
    OpId& channel = (pass.forward ? forward_channel_ : backward_channel_)[s];
    const std::int64_t elements = sequences * scenario_.model.sequence_length * scenario_.model.d_model;
    const Exchange exchange{
        {node(stage), node(to)},
        {{Content::activation, TrafficClass::activation, {}, scenario_.strategy.wire, elements}}};
    Op send = {label + ": transfer from stage " + std::to_string(stage),
               Transfer{Pattern::point_to_point, Collective::direct, {exchange}},
               {computed_[s]}};
    if (channel >= 0) send.receive_after = {channel};
    channel = add(std::move(send));
    (pass.forward ? activations_ : gradients_)[static_cast<std::size_t>(to)][i] = channel;
    return true;
  }

  const Scenario& scenario_;
  int stage_sites_, stages_, micro_batches_;
  int pipeline_ = 0;  // the pipeline whose passes are added
  RoundPlan round_;
  std::vector<std::vector<Pass>> stage_order_;
  std::vector<std::vector<OpId>> activations_, gradients_;  // [stage][micro-batch]: the transfer to the stage
  std::vector<OpId> computed_, forward_channel_,
      backward_channel_;  // [stage]: its latest operation of the kind
};

Plan plan(const Scenario& scenario) {
  Plan plan = plan_of_rounds(scenario, 1);
  if (scenario.strategy.local_steps > 1)
    plan.notes.push_back("pipeline_wan synchronises in every step, so local_steps is ignored");
  plan.notes.push_back("pipeline_wan: all pipeline stages are assumed to take the same time");
  plan.groups = tensor_groups_by_layer_and_head(scenario.model, scenario.strategy.skip_token);
  const auto tied_table = static_cast<GroupId>(plan.groups.size());
  plan.groups.push_back({{TensorClass::embedding},
                         0,
                         0,
                         0,
                         0,
                         scenario.model.tied_embeddings ? count_parameters(scenario.model).embedding : 0});
  plan.round = [round = Schedule(scenario).round(plan.groups, tied_table)](std::int64_t) { return round; };
  return plan;
}

PlanSummary formula(const Axes& axes, const Fixed& fixed) {
  PlanSummary summary = rounds_of(axes, fixed, 1.0);
  const double n = fixed.micro_batches, sites = fixed.stage_sites;
  const double stages = axes.sites / sites, hops = stages - 1.0;
  const double others = std::min(hops, 1.0);  // 0 if there is only one stage
  summary.idle_factor = hops / n;
  summary.optimizer_factor = 1 / stages;

  Stage fill;  // the first micro-batch passes all stages, forward and back
  fill.latency_hops = 1.0;
  fill.bytes = fill.pair_bytes = axes.global_batch_sequences / sites / n * fixed.sequence_length *
                                 fixed.d_model * axes.bytes_per_element;
  fill.times_per_round = 2.0 * hops;
  summary.add(fill);
  Stage follow = fill;  // arrives right behind the micro-batch before
  follow.latency_hops = 0.0;
  if (fixed.schedule == PipelineSchedule::one_f_one_b) {
    const double groups = std::floor((n - 1) / stages);  // q
    summary.stages[0].times_per_round = 2.0 * hops * (groups + 1.0);
    Stage others_of_group = follow;
    others_of_group.times_per_round = (n - 1 - groups * stages) * others;
    others_of_group.hidden_forwards = others_of_group.hidden_backwards = 1 / n;
    summary.add(others_of_group);
    summary.lower_bound = true;
  } else {
    Stage forward = follow;  // the other micro-batches follow; compute hides their transfers
    forward.times_per_round = (n - 1) * others;
    forward.hidden_forwards = 1 / n;
    summary.add(forward);
    Stage backward = follow;
    backward.times_per_round = (n - 1) * others;
    backward.hidden_backwards = 1 / n;
    summary.add(backward);
  }
  summary.approximate = leaves_remainder(axes.global_batch_sequences, sites * n);
  summary.sent.activations = 2.0 * hops / stages * n * fill.bytes;

  if (sites > 1) {
    // The first and the last stage have half of the norms outside the layers each. Of untied tables, the
    // first one has the embedding and the last one the unembedding.
    Axes of_stage = axes;
    of_stage.sites = sites;
    const double untied = fixed.embedding_elements - fixed.tied_elements, head = fixed.head_elements;
    const double dense = fixed.dense_elements - fixed.embedding_elements;
    const double is_one = std::max(2.0 - stages, 0.0);
    const double table = is_one * untied + (1.0 - is_one) * std::max(head, untied - head);
    const double norms = (dense - fixed.layered_elements) / 2 * (1.0 + is_one);
    const double largest = (fixed.layered_elements + fixed.expert_elements) / stages + norms + table;
    summary.add(averaging_stage(of_stage, fixed, axes.bytes_per_element * largest));
    const double factor = averaging_factor(fixed, of_stage.sites) * axes.bytes_per_element / stages;
    summary.sent.dense = factor * (dense + untied);
    summary.sent.expert_sync = factor * fixed.expert_elements;
    // The sites of a stage may be in one region.
    if (leaves_remainder(fixed.layers, stages) || fixed.collective == Collective::hierarchical)
      summary.approximate = true;
  }

  if (fixed.tied_elements == 0) return summary;
  Axes with_table = axes;
  with_table.sites = std::min(2 * sites, axes.sites);
  summary.add(averaging_stage(with_table, fixed, axes.bytes_per_element * fixed.tied_elements));
  summary.sent.dense += averaging_factor(fixed, with_table.sites) * axes.bytes_per_element *
                        fixed.tied_elements * with_table.sites / axes.sites;
  return summary;
}

void check_stages(const Scenario& scenario) {
  if (scenario.model.opaque)
    throw InputError("strategy.method", "\"pipeline_wan\"",
                     "a model of known width, because activations are sent", "\"fsdp\"");
  const int sites = scenario.sites(), stage_sites = scenario.strategy.stage_sites;
  if (sites % stage_sites != 0)
    throw InputError("strategy.stage_sites", std::to_string(stage_sites),
                     "a divisor of the " + std::to_string(sites) + " sites", "1");
  if (scenario.model.layers < sites / stage_sites)
    throw InputError("platform.sites", std::to_string(sites),
                     "at most one stage for each of the " + std::to_string(scenario.model.layers) +
                         " layers, because each stage has whole layers",
                     std::to_string(scenario.model.layers * stage_sites));
  const std::int64_t batch = scenario.workload.global_batch_sequences / stage_sites;
  if (batch < scenario.strategy.micro_batches)
    throw InputError("strategy.micro_batches", std::to_string(scenario.strategy.micro_batches),
                     "at most one micro-batch for each of the " + std::to_string(batch) +
                         " sequences of a pipeline in a step",
                     std::to_string(std::max<std::int64_t>(1, batch)));
}

}  // namespace

Method pipeline_wan() {
  Method method;
  method.name = "pipeline_wan";
  method.summary =
      "The layers form a pipeline with one stage per site, or per group of sites. In each of the n "
      "micro-batches of a step, each site sends activations to the next site and receives their gradients. "
      "The first and the last site sum the gradient of the tied embedding.";
  method.axes = {"micro_batches", "schedule", "stage_sites", "collective", "payload_dtype"};
  method.source =
      "Huang et al. 2019, GPipe (arXiv 1811.06965); Athlur et al. 2022, Varuna (arXiv 2111.04007); Ryabinin "
      "et al. 2023, SWARM (arXiv 2301.11913); Narayanan et al. 2021 (arXiv 2104.04473)";
  method.every_step = true;
  method.inside_step = always;
  method.residency = Residency::sharded;
  method.check = check_stages;
  method.not_modelled =
      "sites that move between stages (SWARM's rebalancing), layers in proportion to the speed of sites, "
      "interleaved stages, activations in 8 bits unless payload_dtype says so";
  method.assumptions = "stages take equally long, with as many layers in each";
  method.plan = plan;
  method.formula = formula;
  return method;
}

}  // namespace fomoe::costmodel
