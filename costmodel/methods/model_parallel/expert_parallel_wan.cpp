// Expert parallelism across the WAN: every one of the M sites keeps the dense part and N_e/M of the N_e
// experts of each layer. An all-to-all sends activations to the experts' sites or back four times in each of
// the L MoE layers and each step (dispatch and combine, forward and backward). Dense gradients, of size
// S_dense, are all-reduced in every step. With activation checkpointing, dispatch and combine of the forward
// pass are repeated, and the 4 below is a 6. Each site sends B bytes per step:
//   B = 4·L · tokens·copies·d·bytes · (M−1)/M · c   +   2(M−1)/M · S_dense
// tokens = B_g·s/M is the number of tokens of the site, where B_g is the number of sequences in the global
// batch and s is the number of tokens in a sequence. d is the model's width d_model, and `bytes` is the size
// of an element. c is the capacity factor (1 if there is none). With `dispatch_dtype`, the
// half of the transfers that goes to the experts has its own `bytes` (fp8 in DeepSeek-V3).
//
// A token's activation is sent once for each of the token's k experts (GShard, Lepikhin et al. 2020;
// DeepSpeed-MoE, Rajbhandari et al. 2022), so copies = k. With max_sites_per_token = m, the activation is
// sent once for each of at most m sites (node-limited routing, DeepSeek-V3 2024). Then copies =
// min(k, m, M), which is an upper bound because two experts of a token can be on one of the m sites.
//
// With `overlap_dispatch`, a site computes two halves of its batch in turn, and the activations of one half
// travel while the other half computes (DeepSeek-V3, section 3.2.1). With equal halves, t is the time of a
// half's transfer, and d and e are the times of its dense part and its experts in a layer. Apart from the
// first and the last layer, the forward pass of a layer takes
//   2·max(d, t) + 2·max(e, t)
// The formula is only the lower bound max(2(d + e), 4t).
#include <algorithm>

#include "costmodel/methods/all.hpp"
#include "costmodel/methods/model_parallel/expert_traffic.hpp"
#include "platforms/support/input_error.hpp"

namespace fomoe::costmodel {

namespace {

Plan plan(const Scenario& scenario) {
  ExpertTraffic traffic;
  traffic.copies_per_token = scenario.model.active_experts;
  if (scenario.strategy.max_sites_per_token > 0)
    traffic.copies_per_token = std::min<std::int64_t>(
        traffic.copies_per_token, std::min(scenario.strategy.max_sites_per_token, scenario.sites()));
  traffic.loads = router_loads(scenario);
  if (scenario.strategy.overlap_dispatch) traffic.halves = 2;
  Plan plan = expert_plan(scenario);
  double dropped = 0;
  for (const LayerLoad& load : traffic.loads)
    dropped += load.dropped_share / static_cast<double>(traffic.loads.size());
  if (dropped > 0)
    plan.notes.push_back("the capacity factor drops " + std::to_string(100 * dropped) +
                         " % of the activations that tokens send to experts");
  RoundPlan round;
  const OpId backward = append_expert_step(scenario, traffic, round);
  append_dense_synchronisation(scenario, plan.groups, backward, round);
  plan.round = [round = std::move(round)](std::int64_t) { return round; };
  return plan;
}

PlanSummary formula(const Axes& axes, const Fixed& fixed) {
  const double copies = fixed.max_sites_per_token > 0
                            ? std::min({fixed.active_experts, fixed.max_sites_per_token, axes.sites})
                            : fixed.active_experts;
  return expert_traffic_summary(axes, fixed, copies, false);
}

void check_halves(const Scenario& scenario) {
  check_experts_divide(scenario);
  const std::int64_t batch = scenario.workload.global_batch_sequences;
  if (scenario.strategy.overlap_dispatch && batch < std::int64_t{2} * scenario.sites())
    throw InputError("strategy.overlap_dispatch", "true",
                     "false, or at least two sequences per site and step, which has " +
                         std::to_string(batch) + " sequences in all",
                     "false");
}

}  // namespace

Method expert_parallel_wan() {
  Method method;
  method.name = "expert_parallel_wan";
  method.summary =
      "In every layer, forward and backward, an all-to-all sends activations to the sites of their experts "
      "and back. In every step, all sites all-reduce the dense gradients.";
  method.axes = {"max_sites_per_token", "capacity_factor", "router",        "overlap_dispatch",
                 "collective",          "payload_dtype",   "dispatch_dtype"};
  method.source =
      "Lepikhin et al. 2020, GShard (arXiv 2006.16668); Rajbhandari et al. 2022, DeepSpeed-MoE (arXiv "
      "2201.05596); DeepSeek-V3 (arXiv 2412.19437)";
  method.every_step = true;
  method.inside_step = always;
  method.residency = Residency::experts_sharded;
  method.check = check_halves;
  method.not_modelled =
      "a forward and a backward chunk at the same time (DualPipe of DeepSeek-V3; overlap_dispatch has two "
      "halves of one pass); the time that the GPUs spend on sending";
  method.assumptions = "a token's copies go to sites evenly, or as strategy.router says";
  method.plan = plan;
  method.formula = formula;
  return method;
}

}  // namespace fomoe::costmodel
