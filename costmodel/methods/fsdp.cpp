// Fully sharded data parallelism (ZeRO stage 3) across the M sites: each site keeps 1/M of parameters,
// gradients and moments. In every step the parameters are all-gathered before the forward pass, freed, and
// all-gathered again before the backward pass. Then gradients are reduce-scattered, and each site updates its
// shard. Each site sends B bytes per step, where S is the size of the whole model (Rajbhandari et al. 2020,
// section 7: 1.5 times data parallelism):
//   B = 3(M−1)/M · S
// The whole model is gathered at once, and compute hides no gather. The time is therefore an upper bound for
// an implementation that gathers layer by layer. If links are slow, the time is exact.
#include "costmodel/methods/all.hpp"
#include "costmodel/plan/building_blocks.hpp"
#include "costmodel/plan/ring_order.hpp"

namespace fomoe::costmodel {

namespace {

Plan plan(const Scenario& scenario) {
  Plan plan = plan_of_rounds(scenario, 1);
  if (scenario.strategy.local_steps > 1)
    plan.notes.push_back("fsdp synchronises in every step, so local_steps is ignored");
  RoundPlan round;
  RingOrders orders(scenario);
  const auto transfer = [&](const char* name, Pattern pattern, Content content) {
    Exchange exchange = full_model_exchange(scenario, plan.groups, {content});
    orders.apply(exchange.nodes);
    Op op{name, Transfer{pattern, scenario.strategy.collective, {exchange}}, {}};
    if (!round.ops.empty()) op.after = {static_cast<OpId>(round.ops.size()) - 1};
    round.ops.push_back(std::move(op));
  };
  const auto compute = [&](const char* name, Work work, double share) {
    Op op = compute_op(scenario, name, work, 1, {static_cast<OpId>(round.ops.size()) - 1});
    std::get<Compute>(op.what).share = share;
    round.ops.push_back(std::move(op));
  };
  transfer("gather parameters for forward", Pattern::all_gather, Content::parameter);
  compute("forward", Work::forward, 1);
  transfer("gather parameters for backward", Pattern::all_gather, Content::parameter);
  compute("backward", Work::backward, 1);
  transfer("reduce-scatter gradients", Pattern::reduce_scatter, Content::gradient);
  compute("optimizer", Work::optimizer, 1.0 / scenario.sites());
  plan.round = [round = std::move(round)](std::int64_t) { return round; };
  return plan;
}

struct Formula {
  template <class V>
  Summary<V> operator()(const Axes<V>& axes, const Fixed& fixed) const {
    // An all-gather or a reduce-scatter is half of an all-reduce. Three of them run one after the other.
    Summary<V> summary = full_model_summary(axes, fixed, constant<V>(1), 1.5);
    summary.stages[0].latency_hops = 1.5 * all_reduce_hops(fixed.collective, axes.sites);
    summary.optimizer_factor = 1 / axes.sites;
    return summary;
  }
};

}  // namespace

Method fsdp() {
  Method method;
  method.name = "fsdp";
  method.summary =
      "In every step, all sites all-gather the parameters of the whole model before the forward pass and "
      "again before the backward pass, and reduce-scatter the gradients.";
  method.axes = {"collective", "payload_dtype"};
  method.source = "Rajbhandari et al. 2020, ZeRO (arXiv 1910.02054); Zhao et al. 2023, PyTorch FSDP";
  method.every_step = true;
  method.inside_step = always;
  method.residency = Residency::sharded_gathered;
  method.plan = plan;
  use_formula(method, Formula{});
  return method;
}

}  // namespace fomoe::costmodel
