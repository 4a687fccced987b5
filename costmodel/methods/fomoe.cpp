// FoMoE: each of the M sites holds N_le = O_e·N_e/M of the N_e experts of every layer, so each expert has O_e
// owners. If N_le is no whole number, sites hold one expert more in some layers than in others, in turn, and
// a site that holds more in all layers sends more; then N_le, and what follows from it, is the mean over
// sites. After K local steps the dense part is averaged among all sites. At the same time each expert is
// averaged among its owners. An outer step follows. A random placement is redrawn at the end of every T-th
// round but the last, and a site fetches its new experts from an old owner. An affinity placement is computed
// once, from routing counts. A rotated placement has the blocks of the fixed one, which begin at another site
// in each layer, so that a site shares its experts with more than O_e − 1 others. Each site sends B_dense +
// B_sparse bytes per round, where S_dense is the size of the dense part, s_expert is the size of an expert,
// and Σ is over the layers:
//   B_dense  = c · 2(M−1)/M · S_dense
//   B_sparse = (c·R + P) · Σ N_le · s_expert,  R = 2(O_e−1)/O_e,  P = (1 − O_e/M)/T
//              (FoMoE paper, eq. sparse_bytes_cost; ⌊(rounds − 1)/T⌋/rounds stands for 1/T in a run that
//              ends)
// If a site holds n experts of a layer in every epoch, a reshuffle replaces n·(1 − n/N_e) of them. Where n is
// not the same at all sites, the mean of this is below N_le·(1 − N_le/N_e) by f·(1 − f)/N_e, where f is the
// share of the sites that have one expert more.
// c = 1 for pseudo-gradients or parameters. c = 3 with outer_optimizer = local_adamw, which also averages
// both moments. Moments never migrate: they restart at zero on a new owner. Outer state migrates if
// outer_state_on_migration = transfer. P then counts 2 times (parameters and momentum), or 3 times with adam
// and yogi, which have two moments.
//
// With `fragments` P > 1 or `overlap_steps` τ > 0, fragments of whole layers are synchronised in turn, as in
// Streaming DiLoCo: each has its layers' dense part, averaged among all sites, and their experts, averaged
// among their owners. It is sent after step ⌊(p+1)·K/P⌋ and applied τ steps later
// (shared/fragment_rounds.hpp). A round sends the same bytes. This is the paper's α, the share of the
// communication that compute hides:
//   round = K·t_step + Σ_p max(0, t_p − τ·t_step) + t_migration
// A round that ends with a migration sends all fragments after its last step and hides nothing, so that
// experts change their owners just after these have averaged them.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "costmodel/methods/all.hpp"
#include "costmodel/methods/shared/expert_owners.hpp"
#include "costmodel/methods/shared/fragment_formula.hpp"
#include "costmodel/methods/shared/fragment_rounds.hpp"
#include "costmodel/plan/building_blocks.hpp"
#include "costmodel/plan/placement_affinity.hpp"
#include "costmodel/plan/site_shares.hpp"

namespace fomoe::costmodel {

namespace {

struct Shape {
  int layers, experts, sites, overlap;
};

Shape shape_of(const Scenario& scenario) {
  return {static_cast<int>(moe_layers(scenario.model)), static_cast<int>(scenario.model.experts),
          scenario.sites(), scenario.strategy.expert_overlap};
}

using PlacementOfEpoch = std::function<Placement(std::int64_t)>;

bool reshuffles(const Scenario& scenario) {
  return scenario.strategy.placement == PlacementKind::random &&
         scenario.strategy.expert_overlap < scenario.sites();
}

PlacementOfEpoch placement_of_epoch(const Scenario& scenario) {
  const Shape s = shape_of(scenario);
  if (scenario.strategy.placement == PlacementKind::random) {
    return [s, seed = scenario.seed](std::int64_t epoch) {
      return random_placement(s.layers, s.experts, s.sites, s.overlap, seed,
                              static_cast<std::uint64_t>(epoch));
    };
  }
  Placement placement = staying_placement(scenario.strategy, s.layers, s.experts, s.sites, s.overlap);
  return [staying = std::move(placement)](std::int64_t) { return staying; };
}

// The experts follow the dense part in the list of tensor groups.
constexpr GroupId kFirstExpert = kDenseGroup + 1;

RoundPlan round_plan(const Scenario& scenario, const std::vector<TensorGroup>& groups,
                     const ExpertOwners& owners, std::int64_t index, std::int64_t rounds,
                     std::int64_t steps) {
  const Strategy& strategy = scenario.strategy;
  const std::vector<Content> contents = averaged_contents(strategy.outer_optimizer);
  const ExpertTransfers transfers(scenario, groups, kFirstExpert);

  RoundPlan round;
  round.ops.push_back(compute_op(scenario, "local steps", Work::whole_step, steps, {}));
  std::vector<OpId> synchronised;
  const auto synchronise = [&](const char* name, std::vector<Exchange> exchanges) {
    synchronised.push_back(static_cast<OpId>(round.ops.size()));
    round.ops.push_back(average_op(scenario, name, std::move(exchanges), {0}));
  };
  if (strategy.expert_overlap == scenario.sites()) {
    synchronise("average the whole model", {full_model_exchange(scenario, groups, contents)});
  } else {
    Exchange dense{all_workers(scenario), {}};
    for (const Content content : contents) {
      dense.payloads.push_back(
          make_payload(groups, content, TrafficClass::dense, format_of(strategy, content), {kDenseGroup}));
    }
    synchronise("average dense", {std::move(dense)});
    if (strategy.expert_overlap > 1) {
      const Placement placement = owners.of_round(index);
      std::vector<Exchange> experts;
      for (int layer = 0; layer < placement.layers(); ++layer)
        transfers.add_averages(contents, placement, layer, experts);
      synchronise("average experts", std::move(experts));
    }
  }
  if (outer_steps_of(strategy.outer_optimizer) > 0) {
    round.ops.push_back(
        compute_op(scenario, outer_step_name(strategy.outer_optimizer), Work::outer_step, 1, synchronised));
    synchronised = {static_cast<OpId>(round.ops.size()) - 1};
  }
  if (std::optional<Op> migrate = transfers.migration(owners, index, rounds, synchronised))
    round.ops.push_back(*std::move(migrate));
  return round;
}

Plan rounds_of_whole_models(const Scenario& scenario, const ExpertOwners& owners) {
  const std::int64_t local_steps = scenario.strategy.local_steps;
  Plan plan = plan_of_rounds(scenario, local_steps, owners.migration_period);
  plan.round = [scenario, owners, groups = plan.groups, rounds = plan.rounds, steps = plan.steps,
                local_steps](std::int64_t index) {
    return round_plan(scenario, groups, owners, index, rounds,
                      std::min(local_steps, steps - index * local_steps));
  };
  return plan;
}

Plan plan(const Scenario& scenario) {
  const Strategy& strategy = scenario.strategy;
  const PlacementOfEpoch placement_of = placement_of_epoch(scenario);
  const std::int64_t steps = optimizer_steps(scenario);
  const std::int64_t rounds = (steps + strategy.local_steps - 1) / strategy.local_steps;
  ExpertOwners owners;
  owners.of_round = [placement_of, period = strategy.reshuffle_rounds,
                     last = rounds - 1](std::int64_t index) {
    return placement_of(std::min(index, last) / period);  // nothing moves after the last round
  };
  if (reshuffles(scenario)) owners.migration_period = strategy.reshuffle_rounds;
  Plan plan = in_fragments(strategy) || strategy.layerwise
                  ? plan_of_fragments(scenario, averaged_contents(strategy.outer_optimizer), owners)
                  : rounds_of_whole_models(scenario, owners);
  plan.placement = owners.of_round;
  if (strategy.expert_overlap == scenario.sites()) {
    plan.notes.push_back(
        "expert_overlap equals the number of sites, so every site holds all experts, as in diloco");
  }
  if (strategy.placement == PlacementKind::affinity) {
    const RoutingCounts& counts = strategy.routing_counts;
    const Shape s = shape_of(scenario);
    const auto percent = [&](const Placement& placement) {
      return std::to_string(std::lround(100 * skipped_share(counts, placement))) + " %";
    };
    plan.notes.push_back(
        "affinity placement: " + percent(placement_of(0)) +
        " of the routed tokens have their expert at another site; the fixed placement would give " +
        percent(fixed_placement(s.layers, s.experts, s.sites, s.overlap)));
  }
  return plan;
}

/// Through a store, the dense part and the experts of each set of owners are objects of their own. They share
/// a site's links, and an object that all have uploaded is downloaded while others are still uploaded.
void add_store_stages(PlanSummary& summary, const Axes& axes, const Fixed& fixed, double element_bytes,
                      double missing_bytes, double migrations_per_round) {
  const double sites = axes.sites, overlap = axes.expert_overlap;
  if (overlap == sites) {
    summary.add(averaging_stage(axes, fixed, element_bytes * (fixed.dense_elements + fixed.expert_elements)));
    return;
  }
  // Experts of a fixed placement are held by overlap/gcd sets of owners for each site (placement.hpp). Other
  // placements draw the sets, or have more of them: of N = C(M, O_e) sets, n experts use N·(1 − (1 − 1/N)^n).
  const auto common = static_cast<double>(std::gcd(std::llround(sites), std::llround(overlap)));
  double sets = overlap / common;
  const double experts = fixed.moe_layers * fixed.experts;
  if (overlap > 1.0 &&
      leaves_remainder(experts * common, sites)) {  // some sets have one expert more, or none
    sets *= std::min(1.0, experts * common / sites);
    summary.approximate = true;
  }
  if (fixed.placement != PlacementKind::fixed) {
    double all_sets = 1.0;
    for (double i = 0.0; i < overlap; ++i) all_sets *= (sites - i) / (overlap - i);
    sets = all_sets * -std::expm1(experts * std::log1p(-1.0 / all_sets)) * overlap / sites;
    summary.approximate = true;
  }
  const double held_bytes = element_bytes * fixed.expert_elements * overlap / sites;
  Stage stage = averaging_stage(axes, fixed, element_bytes * fixed.dense_elements);
  if (overlap > 1.0) stage.set_objects(1, {held_bytes / sets, sets, overlap}, fixed.store);
  summary.add(stage);
  if (fixed.placement != PlacementKind::random) return;
  Stage migration;
  migration.between = Between::store;
  const double peers = sites - 1.0;
  migration.set_objects(0, {missing_bytes / peers, peers, 2.0},
                        {});  // every pair of sites is a sender and a receiver
  migration.times_per_round = migrations_per_round;
  summary.add(migration);
}

PlanSummary formula(const Axes& axes, const Fixed& fixed) {
  // Of an element, with all contents.
  const double bytes =
      contents_of(fixed.outer_optimizer) * averaged_bytes_per_element(axes, fixed, fixed.outer_optimizer);
  if (fixed.layerwise || axes.fragments > 1.0 || axes.overlap_steps > 0.0) {
    PlanSummary summary = summary_of_fragments(axes, fixed, bytes);
    summary.outer_steps_per_round *= outer_steps_of(fixed.outer_optimizer);
    add_migrations(summary, axes, fixed);
    return summary;
  }
  PlanSummary summary = rounds_of(axes, fixed, axes.local_steps);
  summary.outer_steps_per_round = outer_steps_of(fixed.outer_optimizer);
  const DenseAndExperts sent = sent_to_owners(axes, fixed, bytes);
  summary.sent.dense = sent.dense;
  summary.sent.expert_sync = sent.experts;
  if (fixed.collective == Collective::store) {
    const double held_share = axes.expert_overlap / axes.sites;
    add_store_stages(summary, axes, fixed, bytes, missing_bytes_of(axes, fixed, held_share),
                     migrations_per_round(axes, fixed, summary.rounds));
  } else {
    summary.add(owners_stage(axes, fixed, {bytes * fixed.dense_elements, bytes * fixed.expert_elements}));
  }
  add_migrations(summary, axes, fixed);
  return summary;
}

}  // namespace

Method fomoe() {
  Method method;
  method.name = "fomoe";
  method.summary =
      "Every K steps, all sites average the pseudo-gradients of the dense part, and the O_e owners of each "
      "expert average those of the expert, at once or in fragments of the layers. With random placement, "
      "experts migrate between sites.";
  method.axes = {"local_steps",
                 "fragments",
                 "fragment_pattern",
                 "overlap_steps",
                 "layerwise",
                 "expert_overlap",
                 "placement",
                 "reshuffle_rounds",
                 "skip_token",
                 "outer_optimizer",
                 "outer_state_on_migration",
                 "collective",
                 "payload_dtype",
                 "parameter_dtype",
                 "compression",
                 "quorum",
                 "straggler_timeout"};
  method.source = "FoMoE (arXiv 2606.19025)";
  method.partial_experts = true;
  method.not_modelled = "a placement that follows routing while the run trains";
  method.assumptions =
      "experts of a layer are independent payloads; migrated experts have no AdamW moments; fragments are "
      "those of Streaming DiLoCo, with the experts of their layers, and a round that ends with a migration "
      "sends them together after its last step";
  method.through_store = true;
  method.inside_step = sends_layers;
  method.check = check_fragments;
  method.plan = plan;
  method.formula = formula;
  return method;
}

}  // namespace fomoe::costmodel
