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
  return {static_cast<int>(moe_layers(scenario.model)), static_cast<int>(scenario.model.experts),
          scenario.sites(), scenario.strategy.expert_overlap};
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
      exchanges.push_back({{owners.begin(), owners.end()},
                           {make_payload(groups, Content::pseudo_gradient, TrafficClass::expert_sync,
                                         scenario.strategy.wire, {expert_group(scenario, layer, expert)})}});
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
         {make_payload(groups, Content::parameter, TrafficClass::migration, scenario.strategy.wire,
                       {expert_group(scenario, move.layer, move.expert)})}});
  }
  return exchanges;
}

RoundPlan round_plan(const Scenario& scenario, const std::vector<TensorGroup>& groups, std::int64_t index,
                     std::int64_t steps) {
  const Strategy& strategy = scenario.strategy;
  const std::int64_t epoch = index / strategy.reshuffle_rounds;
  const Placement placement = placement_of_epoch(scenario, epoch);

  RoundPlan round;
  round.ops.push_back(compute_op(scenario, "local steps", Work::whole_step, steps, {}));
  std::vector<OpId> synchronised;
  const auto synchronise = [&](const char* name, std::vector<Exchange> exchanges) {
    synchronised.push_back(static_cast<OpId>(round.ops.size()));
    round.ops.push_back(all_reduce_op(scenario, name, std::move(exchanges), {0}));
  };
  if (strategy.expert_overlap == scenario.sites()) {
    synchronise("all-reduce pseudo-gradients",
                {full_model_exchange(scenario, groups, {Content::pseudo_gradient})});
  } else {
    synchronise("all-reduce dense", {{all_workers(scenario),
                                      {make_payload(groups, Content::pseudo_gradient, TrafficClass::dense,
                                                    strategy.wire, {kDenseGroup})}}});
    if (strategy.expert_overlap > 1)
      synchronise("all-reduce experts", owner_exchanges(scenario, groups, placement));
  }
  const auto outer = static_cast<OpId>(round.ops.size());
  round.ops.push_back(compute_op(scenario, "outer step", Work::outer_step, 1, synchronised));
  if (reshuffles(scenario) && (index + 1) % strategy.reshuffle_rounds == 0) {
    Op migrate;
    migrate.name = "migrate experts";
    migrate.what =
        Transfer{Pattern::point_to_point, strategy.collective,
                 migration_exchanges(scenario, groups, placement, placement_of_epoch(scenario, epoch + 1))};
    migrate.after = {outer};
    round.ops.push_back(std::move(migrate));
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

struct Formula {
  template <class V>
  Summary<V> operator()(const Axes<V>& axes, const Fixed& fixed) const {
    Summary<V> summary = rounds_of(axes, fixed, axes.local_steps);
    summary.outer_steps_per_round = constant<V>(1);
    const bool random = fixed.placement == PlacementKind::random;
    const V dense_bytes = fixed.dense_elements * axes.bytes_per_element;
    const V held_share = axes.expert_overlap / axes.sites;
    const V held_bytes = fixed.expert_elements * held_share * axes.bytes_per_element;
    const V missing_bytes = (1.0 - held_share) * held_bytes;
    const V migrations_per_round = (random ? 1.0 : 0.0) / axes.reshuffle_rounds;
    summary.sent.dense = all_reduce_factor(axes.sites) * dense_bytes;
    summary.sent.expert_sync = all_reduce_factor(axes.expert_overlap) * held_bytes;
    summary.sent.migration = migrations_per_round * missing_bytes;

    Stage<V> synchronisation;
    synchronisation.latency_hops = all_reduce_hops(fixed.collective, axes.sites);
    synchronisation.bytes = summary.sent.dense + summary.sent.expert_sync;
    // Fixed blocks exchange among the same few sites; random owner sets spread over all pairs.
    const V peers = max_of(V(axes.sites - 1.0), constant<V>(1));
    const V expert_pair_bytes =
        random ? V(summary.sent.expert_sync / peers)
               : V(all_reduce_pair_factor(fixed.collective, axes.expert_overlap) * held_bytes);
    synchronisation.pair_bytes =
        all_reduce_pair_factor(fixed.collective, axes.sites) * dense_bytes + expert_pair_bytes;
    summary.add(synchronisation);
    if (random) {
      Stage<V> migration;
      // Nothing migrates, and no latency is paid, where every site holds all experts.
      migration.latency_hops = ceil_of(V(1.0 - held_share));
      migration.bytes = missing_bytes;
      migration.pair_bytes = missing_bytes / peers;
      migration.times_per_round = migrations_per_round;
      summary.add(migration);
    }
    return summary;
  }
};

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
  method.outer_bytes_per_parameter = 8;  // fp32 anchor and momentum
  method.plan = plan;
  use_formula(method, Formula{});
  return method;
}

}  // namespace fomoe::costmodel
