// Data-parallel training: gradients of the whole model are all-reduced in every step, between the backward
// pass and the optimiser. Each of the M sites sends 2(M−1)/M · S bytes per step, where S is the size of all
// gradients.
//
// With P `fragments`, the gradients form P buckets of whole layers, as in PyTorch's DistributedDataParallel
// (Li et al. 2020, section 3.2). The backward pass goes from the last layer to the first. The gradients of a
// bucket are sent as soon as the backward pass has left the bucket's layers, one bucket after the other. The
// embedding is in the last bucket. So is the unembedding if both are one tied table, whose gradient is
// complete at the very end only. An untied unembedding is in the first bucket, since the backward pass begins
// with it. Gradients that are summed over several micro-batches are complete only in the last micro-batch, so
// only its backward pass hides transfers:
//   exposed = t_P + max(0, Σ_{p<P} t_p − s·(1 − h)·(1 − 1/P)·t_backward)
// Here t_p is the time to transfer bucket p, s is the last micro-batch's share of a step, and h is the share
// of the unembedding in the backward pass, which comes before all layers.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "costmodel/formula/closed_form.hpp"
#include "costmodel/methods/all.hpp"
#include "costmodel/model/flops.hpp"
#include "costmodel/model/site_model.hpp"
#include "costmodel/plan/building_blocks.hpp"
#include "costmodel/plan/site_shares.hpp"

namespace fomoe::costmodel {

namespace {

// The layers of a bucket, [begin, end). Bucket 0 has the last layers of the model.
struct Layers {
  std::int64_t begin, end;
  [[nodiscard]] double share(std::int64_t layers) const {
    return static_cast<double>(end - begin) / static_cast<double>(layers);
  }
};

Layers layers_of(std::int64_t layers, std::int64_t buckets, std::int64_t bucket) {
  return {layers - (bucket + 1) * layers / buckets, layers - bucket * layers / buckets};
}

Exchange bucket_exchange(const Scenario& scenario, const std::vector<TensorGroup>& groups, Layers layers) {
  std::vector<int> ids(static_cast<std::size_t>(layers.end - layers.begin));
  std::iota(ids.begin(), ids.end(), static_cast<int>(layers.begin));
  Exchange exchange = layers_exchange(scenario, groups, Content::gradient, ids, layers.begin == 0);
  if (layers.end == scenario.model.layers && untied_head_elements(scenario.model) > 0) {
    Payload& dense = exchange.payloads.front();
    dense.groups.push_back(static_cast<GroupId>(groups.size()) - 1);
    dense.elements += groups.back().elements;
  }
  return exchange;
}

RoundPlan at_once(const Scenario& scenario, const Plan& plan) {
  RoundPlan round;
  round.ops.push_back(compute_op(scenario, "gradients", Work::gradients, 1, {}));
  round.ops.push_back(average_op(scenario, "average gradients",
                                 {full_model_exchange(scenario, plan.groups, {Content::gradient})}, {0}));
  round.ops.push_back(compute_op(scenario, "optimizer", Work::optimizer, 1, {1}));
  return round;
}

RoundPlan behind_backward(const Scenario& scenario, const Plan& plan, double last_micro_batch) {
  const std::int64_t layers = scenario.model.layers, buckets = scenario.strategy.fragments;
  const double head = head_shares(scenario.model, scenario.gpus, flops_per_token(scenario)).backward;
  RoundPlan round;
  const auto add = [&](Op op) {
    round.ops.push_back(std::move(op));
    return static_cast<OpId>(round.ops.size()) - 1;
  };
  OpId computed = -1, sent = -1;
  const auto compute = [&](std::string name, Work work, double share) {
    Op op = compute_op(scenario, std::move(name), work, 1, {});
    if (computed >= 0) op.after = {computed};
    std::get<Compute>(op.what).share = share;
    computed = add(std::move(op));
  };
  if (last_micro_batch < 1)
    compute("gradients of all micro-batches but one", Work::gradients, 1 - last_micro_batch);
  compute("forward", Work::forward, last_micro_batch);
  for (std::int64_t bucket = 0; bucket < buckets; ++bucket) {
    const Layers of = layers_of(layers, buckets, bucket);
    const std::string number = std::to_string(bucket);
    const double of_backward = (bucket == 0 ? head : 0.0) + (1 - head) * of.share(layers);
    compute("backward of bucket " + number, Work::backward, last_micro_batch * of_backward);
    std::vector<OpId> after = {computed};
    if (sent >= 0) after.push_back(sent);
    sent = add(average_op(scenario, "average bucket " + number, {bucket_exchange(scenario, plan.groups, of)},
                          std::move(after)));
  }
  add(compute_op(scenario, "optimizer", Work::optimizer, 1, {sent}));
  return round;
}

Plan plan(const Scenario& scenario) {
  Plan plan = plan_of_rounds(scenario, 1);
  if (scenario.strategy.local_steps > 1)
    plan.notes.push_back("ddp synchronises in every step, so local_steps is ignored");
  RoundPlan round;
  if (scenario.strategy.fragments == 1) {
    round = at_once(scenario, plan);
  } else {
    plan.groups = tensor_groups_by_layer_and_head(scenario.model, scenario.strategy.skip_token);
    if (!step_passes(scenario).given) {
      plan.notes.push_back(
          "compute.micro_batch_sequences is not given, so the transfer of gradients overlaps with the "
          "backward pass of a site's whole batch");
    }
    round = behind_backward(scenario, plan, step_passes(scenario).last_share);
  }
  plan.round = [round = std::move(round)](std::int64_t) { return round; };
  return plan;
}

PlanSummary formula(const Axes& axes, const Fixed& fixed) {
  PlanSummary summary = full_model_summary(axes, fixed, 1.0, axes.bytes_per_element);
  summary.stages.clear();
  // Half of the norms outside the layers, and an untied unembedding, go with the last layer's bucket.
  const double edge = (fixed.dense_elements - fixed.embedding_elements - fixed.layered_elements) / 2;
  const double middle = (fixed.layered_elements + fixed.expert_elements) / axes.fragments;
  const double others = axes.fragments - 1.0;
  const double any = std::min(others, 1.0);  // 0 if P = 1: one bucket is the first and the last
  summary.add(averaging_stage(axes, fixed,
                              axes.bytes_per_element * (middle + fixed.embedding_elements -
                                                        any * fixed.head_elements + (2.0 - any) * edge)));
  Stage hidden = averaging_stage(
      axes, fixed, axes.bytes_per_element * (others * middle + any * (edge + fixed.head_elements)));
  hidden.latency_hops *= others;
  hidden.hidden_backwards = fixed.passes.last_share * (1 - fixed.head_of_backward) * others / axes.fragments;
  summary.add(hidden);
  summary.approximate = leaves_remainder(fixed.layers, axes.fragments);
  return summary;
}

// The default of PyTorch's DistributedDataParallel, bucket_cap_mb (Li et al. 2020). A bucket has at least one
// layer; the embedding is in the last one.
constexpr double kBucketBytes = 25.0 * 1024 * 1024;

int usual_buckets(const ModelShape& model, const Strategy& strategy) {
  if (strategy.secure_aggregation) return 1;  // masks all-reduces that start together
  const ParameterCounts counts = count_parameters(model);
  const double bytes =
      static_cast<double>(counts.total() - counts.embedding) * strategy.wire.bytes_per_element();
  return static_cast<int>(std::clamp(std::ceil(bytes / kBucketBytes), 1.0,
                                     static_cast<double>(std::max<std::int64_t>(1, model.layers))));
}

}  // namespace

Method ddp() {
  Method method;
  method.name = "ddp";
  method.summary =
      "In every step, all sites all-reduce the gradients of the whole model, in buckets that overlap with "
      "the backward pass.";
  method.axes = {"fragments", "collective", "payload_dtype", "compression", "quorum", "straggler_timeout"};
  method.source = "Li et al. 2020, PyTorch Distributed; FoMoE paper, regime 1";
  method.every_step = true;
  method.inside_step = [](const Scenario& scenario) { return scenario.strategy.fragments > 1; };
  method.usual_fragments = usual_buckets;
  method.not_modelled = "gradient compression with low rank; the host's share of the work";
  method.assumptions =
      "buckets of about 25 MiB of whole layers, one after another; gradients of several micro-batches are "
      "complete in the last one";
  method.plan = plan;
  method.formula = formula;
  return method;
}

}  // namespace fomoe::costmodel
