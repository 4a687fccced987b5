// FoMoE: each site holds N_le = O_e·N_e/M experts of every layer. After K local steps the dense part is
// averaged among all sites and each expert among its O_e owners, at the same time; then an outer Nesterov
// step. A random placement is redrawn at the end of every T-th round, and experts new to a site are fetched
// from an old owner.
//   B_dense  = 2(M−1)/M · S_dense
//   B_sparse = (R + P) · Σ N_le · s_expert,  R = 2(O_e−1)/O_e,  P = (1 − O_e/M)/T     (FoMoE paper, eq.
//   sparse_bytes_cost)
#include <algorithm>

#include "costmodel/methods/all.hpp"
#include "costmodel/methods/building_blocks.hpp"

namespace fomoe::costmodel {

namespace {

struct Shape {
  int layers, experts, sites, overlap;
};

Shape shape_of(const Scenario& scenario) {
  return {static_cast<int>(scenario.model.layers), static_cast<int>(scenario.model.experts), scenario.sites(),
          scenario.strategy.expert_overlap};
}

bool reshuffles(const Scenario& scenario) {
  return scenario.strategy.placement == PlacementKind::random &&
         scenario.strategy.expert_overlap < scenario.sites();
}

Placement placement_of_epoch(const Scenario& scenario, std::int64_t epoch) {
  const Shape s = shape_of(scenario);
  if (scenario.strategy.placement == PlacementKind::fixed)
    return fixed_placement(s.layers, s.experts, s.sites, s.overlap);
  return random_placement(s.layers, s.experts, s.sites, s.overlap, scenario.seed,
                          static_cast<std::uint64_t>(epoch));
}

// Every expert is an exchange of its own: executors bundle as they need, bytes stay countable per expert.
std::vector<Exchange> owner_exchanges(const Scenario& scenario, const std::vector<TensorGroup>& groups,
                                      const Placement& placement) {
  std::vector<Exchange> exchanges;
  for (int layer = 0; layer < placement.layers(); ++layer) {
    for (int expert = 0; expert < placement.experts(); ++expert) {
      const auto owners = placement.owners(layer, expert);
      exchanges.push_back(
          {{owners.begin(), owners.end()},
           {make_payload(groups, Content::pseudo_gradient, TrafficClass::expert_sync,
                         scenario.strategy.payload_dtype, {expert_group(scenario, layer, expert)})}});
    }
  }
  return exchanges;
}

std::vector<Exchange> migration_exchanges(const Scenario& scenario, const std::vector<TensorGroup>& groups,
                                          const Placement& from, const Placement& to) {
  std::vector<Exchange> exchanges;
  for (const Migration& move : migrations(from, to)) {
    exchanges.push_back(
        {{move.sender, move.receiver},
         {make_payload(groups, Content::parameter, TrafficClass::migration, scenario.strategy.payload_dtype,
                       {expert_group(scenario, move.layer, move.expert)})}});
  }
  return exchanges;
}

RoundPlan round_plan(const Scenario& scenario, const std::vector<TensorGroup>& groups, std::int64_t index,
                     std::int64_t steps) {
  const Strategy& strategy = scenario.strategy;
  const Pattern all_reduce = all_reduce_pattern(strategy.collective);
  const std::int64_t epoch = index / strategy.reshuffle_rounds;
  const Placement placement = placement_of_epoch(scenario, epoch);

  RoundPlan round;
  round.ops.push_back({"local steps", Compute{Work::whole_step, all_workers(scenario), steps}, {}});
  std::vector<OpId> synchronised;
  const auto synchronise = [&](const char* name, std::vector<Exchange> exchanges) {
    synchronised.push_back(static_cast<OpId>(round.ops.size()));
    round.ops.push_back({name, Transfer{all_reduce, std::move(exchanges)}, {0}});
  };
  if (strategy.expert_overlap == scenario.sites()) {
    synchronise("all-reduce pseudo-gradients",
                {full_model_exchange(scenario, groups, {Content::pseudo_gradient})});
  } else {
    synchronise("all-reduce dense", {{all_workers(scenario),
                                      {make_payload(groups, Content::pseudo_gradient, TrafficClass::dense,
                                                    strategy.payload_dtype, {kDenseGroup})}}});
    if (strategy.expert_overlap > 1)
      synchronise("all-reduce experts", owner_exchanges(scenario, groups, placement));
  }
  const auto outer = static_cast<OpId>(round.ops.size());
  round.ops.push_back({"outer step", Compute{Work::outer_step, all_workers(scenario), 1}, synchronised});
  if (reshuffles(scenario) && (index + 1) % strategy.reshuffle_rounds == 0) {
    round.ops.push_back(
        {"migrate experts",
         Transfer{Pattern::point_to_point,
                  migration_exchanges(scenario, groups, placement, placement_of_epoch(scenario, epoch + 1))},
         {outer}});
  }
  return round;
}

Plan plan(const Scenario& scenario) {
  const std::int64_t local_steps = scenario.strategy.local_steps;
  Plan plan =
      plan_of_rounds(scenario, local_steps, reshuffles(scenario) ? scenario.strategy.reshuffle_rounds : 0);
  if (scenario.strategy.expert_overlap == scenario.sites()) {
    plan.notes.push_back(
        "expert_overlap equals the number of sites: every site holds all experts, as in diloco");
  }
  plan.round = [scenario, groups = plan.groups, steps = plan.steps, local_steps](std::int64_t index) {
    return round_plan(scenario, groups, index, std::min(local_steps, steps - index * local_steps));
  };
  return plan;
}

PlanSummary summarise(const Scenario& scenario) {
  const int sites = scenario.sites();
  const int overlap = scenario.strategy.expert_overlap;
  const Collective collective = scenario.strategy.collective;
  PlanSummary summary = full_model_summary(scenario, scenario.strategy.local_steps, 1);
  summary.outer_steps_per_round = 1;
  if (overlap == sites) return summary;

  const HeldBytes held = held_bytes(scenario);
  const double share_of_rounds =
      reshuffles(scenario) ? 1.0 / static_cast<double>(scenario.strategy.reshuffle_rounds) : 0.0;
  const double missing = 1.0 - static_cast<double>(overlap) / sites;
  summary.sent.dense = all_reduce_factor(sites) * held.dense;
  summary.sent.expert_sync = all_reduce_factor(overlap) * held.experts;
  summary.sent.migration = share_of_rounds * missing * held.experts;

  // Fixed blocks exchange among the same few sites; random owner sets spread over all pairs.
  const bool blocks = scenario.strategy.placement == PlacementKind::fixed;
  const double expert_pair_bytes = blocks ? all_reduce_pair_factor(collective, overlap) * held.experts
                                          : summary.sent.expert_sync / (sites - 1);
  summary.stages = {{all_reduce_hops(collective, sites), summary.sent.dense + summary.sent.expert_sync,
                     all_reduce_pair_factor(collective, sites) * held.dense + expert_pair_bytes, 1}};
  if (share_of_rounds > 0) {
    summary.stages.push_back(
        {1, missing * held.experts, missing * held.experts / (sites - 1), share_of_rounds});
  }
  return summary;
}

}  // namespace

Method fomoe() {
  Method method;
  method.name = "fomoe";
  method.summary =
      "pseudo-gradients: dense part among all sites, each expert among its O_e owners, every K steps; random "
      "placements migrate";
  method.axes =
      "local_steps, expert_overlap, placement, reshuffle_rounds, skip_token, collective, payload_dtype";
  method.source = "FoMoE (arXiv 2606.19025)";
  method.partial_experts = true;
  method.outer_state = true;
  method.plan = plan;
  method.summarise = summarise;
  return method;
}

}  // namespace fomoe::costmodel
