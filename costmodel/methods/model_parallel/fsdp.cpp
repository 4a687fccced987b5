// Fully sharded data parallelism (ZeRO stage 3; PyTorch FSDP) across the M sites. The model is cut into U
// units of whole layers (`fragments`; by default each layer is a unit). With strategy.sharding =
// "full_shard", each site keeps 1/M of parameters, gradients and moments. In each of the n micro-batches of a
// step, the parameters of a unit are all-gathered before its forward pass, freed, and all-gathered again
// before its backward pass. Its gradients are then reduce-scattered. Each site sends B bytes per step, where
// S_p is the size of the model's parameters on the wire and S_g that of its gradients (Rajbhandari et al.
// 2020, section 7, for n = 1; Zhao et al. 2023, section 3.4.1, for gradient accumulation):
//   full_shard          B = (M−1)/M · n·(2·S_p + S_g)
//   full_shard_no_sync  B = (M−1)/M · (2n·S_p + S_g)   gradients are summed unsharded, and reduced once
//   shard_grad_op       B = (M−1)/M · (S_p + S_g)      parameters are gathered once and kept during the step
//   hybrid_shard        B = (M−1)/M · 2·S_g            sharded inside each site only: gradients are
//   all-reduced
// n is ⌈sequences of a site ÷ sequences of a pass⌉, and 1 if compute.micro_batch_sequences is not given.
//
// While a unit computes, the next one is gathered (prefetch). A site has one channel: its transfers follow
// one another. In the backward pass, the parameters of the next unit go before the gradients of the unit that
// computes, as in PyTorch (BACKWARD_PRE). f and b are the times of a unit's forward and backward pass, g the
// time to gather it, r that to reduce its gradients; g₁ and r₁ those of the first unit, which also has the
// embedding tables. With U ≥ 3, one micro-batch takes
//   forward   g₁ + U·f + (U−1)·max(0, g−f)
//   backward  g + U·b + max(0, g−b) + (U−3)·max(0, g+r−b) + max(0, g₁+r−b) + max(0, r−b) + r₁
#include <algorithm>
#include <cmath>
#include <numeric>

#include "costmodel/methods/all.hpp"
#include "costmodel/model/flops.hpp"
#include "costmodel/model/site_model.hpp"
#include "costmodel/plan/building_blocks.hpp"

namespace fomoe::costmodel {

namespace {

// The operations of one step.
class Step {
 public:
  Step(const Scenario& scenario, const std::vector<TensorGroup>& groups, int micro_batches)
      : scenario_(scenario),
        groups_(groups),
        sharding_(scenario.strategy.sharding),
        head_(head_shares(scenario.model, scenario.gpus, flops_per_token(scenario))),
        micro_batches_(micro_batches),
        units_(scenario.strategy.fragments) {}

  RoundPlan build() {
    for (int i = 0; i < micro_batches_; ++i) {
      forward(i);
      backward(i);
    }
    Op optimizer = compute_op(scenario_, "optimizer", Work::optimizer, 1, ends());
    if (sharding_ != Sharding::hybrid_shard)
      std::get<Compute>(optimizer.what).share = 1.0 / scenario_.sites();
    round_.ops.push_back(std::move(optimizer));
    return std::move(round_);
  }

 private:
  // The latest computation and the latest transfer of the site.
  [[nodiscard]] std::vector<OpId> ends() const {
    std::vector<OpId> ends;
    if (computed_ >= 0) ends.push_back(computed_);
    if (sent_ >= 0) ends.push_back(sent_);
    return ends;
  }

  OpId transfer(const std::string& name, Pattern pattern, Content content, int unit) {
    const std::int64_t layers = scenario_.model.layers;
    Exchange exchange;
    if (units_ == 1) {
      exchange = full_model_exchange(scenario_, groups_, {content});
    } else {
      const auto begin = static_cast<int>(unit * layers / units_);
      std::vector<int> of_unit(static_cast<std::size_t>((unit + 1) * layers / units_ - begin));
      std::iota(of_unit.begin(), of_unit.end(), begin);
      exchange = layers_exchange(scenario_, groups_, content, of_unit, unit == 0);
    }
    round_.ops.push_back({name + " of unit " + std::to_string(unit),
                          Transfer{pattern, scenario_.strategy.collective, {exchange}}, ends()});
    return sent_ = static_cast<OpId>(round_.ops.size()) - 1;
  }

  // The unembedding follows the layers of the last unit forward, and precedes them backward.
  void compute(const std::string& name, Work work, int unit, OpId gathered) {
    Op op = compute_op(scenario_, name + " of unit " + std::to_string(unit), work, 1, {});
    if (computed_ >= 0) op.after.push_back(computed_);
    if (gathered >= 0) op.after.push_back(gathered);
    // Layers of a unit, of all micro-batches: micro-batches are taken as equal.
    const std::int64_t layers = std::max<std::int64_t>(1, scenario_.model.layers);
    const std::int64_t whole_layers = (unit + 1) * layers / units_ - unit * layers / units_;
    const auto of_unit = static_cast<double>(whole_layers);
    const double head = work == Work::forward ? head_.forward : head_.backward;
    const double share = (1 - head) * of_unit / static_cast<double>(layers) + (unit + 1 == units_ ? head : 0);
    std::get<Compute>(op.what).share = share / micro_batches_;
    round_.ops.push_back(std::move(op));
    computed_ = static_cast<OpId>(round_.ops.size()) - 1;
  }

  void forward(int micro_batch) {
    const bool gathers =
        sharding_ != Sharding::hybrid_shard && (sharding_ != Sharding::shard_grad_op || micro_batch == 0);
    OpId gathered = -1;
    if (gathers) gathered = transfer("gather for forward", Pattern::all_gather, Content::parameter, 0);
    for (int unit = 0; unit < units_; ++unit) {
      // The next unit is gathered from the moment at which this one computes.
      const OpId own = gathered;
      if (gathers && unit + 1 < units_)
        gathered = transfer("gather for forward", Pattern::all_gather, Content::parameter, unit + 1);
      compute("forward", Work::forward, unit, own);
    }
  }

  void backward(int micro_batch) {
    const bool gathers = sharding_ == Sharding::full_shard || sharding_ == Sharding::full_shard_no_sync;
    const bool reduces = sharding_ == Sharding::full_shard || micro_batch + 1 == micro_batches_;
    const Pattern reduce =
        sharding_ == Sharding::hybrid_shard ? Pattern::all_reduce : Pattern::reduce_scatter;
    OpId gathered = -1;
    if (gathers)
      gathered = transfer("gather for backward", Pattern::all_gather, Content::parameter, units_ - 1);
    for (int unit = units_ - 1; unit >= 0; --unit) {
      const OpId own = gathered;
      if (gathers && unit > 0)
        gathered = transfer("gather for backward", Pattern::all_gather, Content::parameter, unit - 1);
      compute("backward", Work::backward, unit, own);
      if (reduces) transfer("reduce gradients", reduce, Content::gradient, unit);
    }
  }

  const Scenario& scenario_;
  const std::vector<TensorGroup>& groups_;
  Sharding sharding_;
  HeadShares head_;
  int micro_batches_, units_;
  RoundPlan round_;
  OpId computed_ = -1, sent_ = -1;
};

Plan plan(const Scenario& scenario) {
  Plan plan = plan_of_rounds(scenario, 1);
  if (scenario.strategy.local_steps > 1)
    plan.notes.push_back("fsdp synchronises in every step, so local_steps is ignored");
  if (!step_passes(scenario).given)
    plan.notes.push_back("compute.micro_batch_sequences is not given, so a step of fsdp has one micro-batch");
  if (scenario.strategy.fragments > 1)
    plan.groups = tensor_groups_by_layer(scenario.model, scenario.strategy.skip_token);
  const auto micro_batches = static_cast<int>(step_passes(scenario).count);
  plan.round = [round = Step(scenario, plan.groups, micro_batches).build()](std::int64_t) { return round; };
  return plan;
}

struct Formula {
  // An all-gather or a reduce-scatter of `bytes` bytes is half of an all-reduce.
  static Stage half(const Axes& axes, const Fixed& fixed, double bytes, double times) {
    Fixed dense = fixed;
    dense.sparse_payloads = false;
    Stage stage = averaging_stage(axes, dense, bytes);
    stage.latency_hops *= 0.5;
    stage.bytes *= 0.5;
    stage.pair_bytes *= 0.5;
    stage.times_per_round = times;
    return stage;
  }
  static Stage joined(Stage a, const Stage& b) {
    a.latency_hops += b.latency_hops;
    a.bytes += b.bytes;
    a.pair_bytes += b.pair_bytes;
    return a;
  }

  PlanSummary operator()(const Axes& axes, const Fixed& fixed) const {
    PlanSummary summary = rounds_of(axes, fixed, 1.0);
    const Sharding sharding = fixed.sharding;
    const bool hybrid = sharding == Sharding::hybrid_shard, once = sharding == Sharding::shard_grad_op;
    const double zero = 0.0, one = 1.0, n = fixed.passes.count;
    const double gathering = hybrid ? zero : once ? one : n;             // micro-batches that gather, forward
    const double again = hybrid || once ? zero : n;                      // the same, backward
    const double reducing = sharding == Sharding::full_shard ? n : one;  // micro-batches that reduce
    if (!hybrid) summary.optimizer_factor = 1 / axes.sites;

    const double parameter = bytes_per_parameter(axes, fixed), gradient = axes.bytes_per_element;
    const double sent = (axes.sites - 1.0) / axes.sites *
                        ((gathering + again) * parameter + (hybrid ? 2.0 : 1.0) * reducing * gradient);
    summary.sent.dense = sent * fixed.dense_elements;
    summary.sent.expert_sync = sent * fixed.expert_elements;

    // Half of the norms outside the layers are in the first unit, the other half in the last one.
    const double edge = (fixed.dense_elements - fixed.embedding_elements - fixed.layered_elements) / 2;
    const double units = axes.fragments;
    summary.approximate = leaves_remainder(fixed.layers, units);
    const double middle = (fixed.layered_elements + fixed.expert_elements) / units;
    const double two = std::min(units - 1.0, one), three = std::max(std::min(units - 2.0, one), zero);
    const double first = middle + fixed.embedding_elements + edge * (2.0 - two), last = middle + edge;
    // Passes of a step that the layers of one unit of a micro-batch take. Backward, the last unit comes after
    // the unembedding.
    const double f = (1 - fixed.head_of_forward) / (units * n),
                 b = (1 - fixed.head_of_backward) / (units * n), b_last = b + fixed.head_of_backward / n;
    const auto add = [&](Stage stage, double forwards, double backwards) {
      stage.hidden_forwards = forwards;
      stage.hidden_backwards = backwards;
      summary.add(stage);
    };
    const auto gather = [&](double elements, double times) {
      return half(axes, fixed, parameter * elements, times);
    };
    const auto reduce = [&](double elements, double times) {
      Stage stage = half(axes, fixed, gradient * elements, times);
      return hybrid ? joined(stage, stage) : stage;
    };
    if (!hybrid) {
      add(gather(first, gathering + again * (1.0 - two)), zero, zero);
      add(gather(middle, gathering * std::max(units - 2.0, zero)), f, zero);
      add(gather(last, gathering * two), f, zero);
    }
    if (!hybrid && !once) {
      const double without =
          again - reducing;  // micro-batches that gather for the backward pass and do not reduce
      add(gather(last, again * two), zero, zero);
      add(gather(middle, again * three), zero, b_last);
      add(gather(middle, without * std::max(units - 3.0, zero)), zero, b);
      add(gather(first, again * (two - three)), zero, b_last);
      add(gather(first, without * three), zero, b);
      // The last unit is reduced first: with a gather of a middle unit behind it, of the first one, or none.
      const double four = std::max(std::min(units - 3.0, one), zero);
      add(joined(reduce(last, reducing * four), gather(middle, zero)), zero, b);
      add(joined(reduce(middle, reducing * std::max(units - 4.0, zero)), gather(middle, zero)), zero, b);
      add(joined(reduce(middle + edge * (three - four), reducing * three), gather(first, zero)), zero, b);
      add(reduce(middle + edge * (two - three), reducing * two), zero, b);
      add(reduce(first, reducing), zero, zero);
    } else {
      // The gradients of all units but the first follow each other behind the last micro-batch's backward
      // pass.
      Stage behind = reduce((units - 1.0) * middle + two * edge, one);
      behind.latency_hops *= units - 1.0;
      add(behind, zero, (units - 1.0) * b);
      add(reduce(first, one), zero, zero);
    }
    return summary;
  }
};

// A unit for each layer, as PyTorch's users wrap transformers (Zhao et al. 2023, section 3.2).
int usual_units(const ModelShape& model, const Strategy&) {
  return static_cast<int>(std::max<std::int64_t>(1, model.layers));
}

}  // namespace

Method fsdp() {
  Method method;
  method.name = "fsdp";
  method.summary =
      "In every micro-batch, all sites all-gather the parameters of each layer before its forward pass and "
      "again before its backward pass, and reduce-scatter its gradients. Transfers overlap with computation.";
  method.axes = {"sharding", "fragments", "collective", "payload_dtype", "parameter_dtype"};
  method.source = "Rajbhandari et al. 2020, ZeRO (arXiv 1910.02054); Zhao et al. 2023, PyTorch FSDP";
  method.every_step = true;
  method.inside_step = always;
  method.usual_fragments = usual_units;
  method.residency = Residency::sharded_gathered;
  method.not_modelled =
      "offload to the host; quantised gathers of weights; the outermost unit that PyTorch keeps gathered "
      "after the forward pass";
  method.assumptions = "every layer is a unit; micro-batches are equal; one channel per site";
  method.plan = plan;
  method.formula = [](const Axes& axes, const Fixed& fixed) { return Formula{}(axes, fixed); };
  return method;
}

}  // namespace fomoe::costmodel
