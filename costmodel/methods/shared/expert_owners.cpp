#include "costmodel/methods/shared/expert_owners.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "costmodel/plan/building_blocks.hpp"
#include "costmodel/plan/site_shares.hpp"

namespace fomoe::costmodel {

GroupId ExpertTransfers::group_of(int moe_layer, int expert) const {
  return first_expert_ + static_cast<GroupId>(moe_layer * scenario_->model.experts + expert);
}

void ExpertTransfers::add_averages(const std::vector<Content>& contents, const Placement& placement,
                                   int moe_layer, std::vector<Exchange>& exchanges) const {
  for (int expert = 0; expert < placement.experts(); ++expert) {
    const auto owners = placement.owners(moe_layer, expert);
    Exchange exchange{{owners.begin(), owners.end()}, {}};
    for (const Content content : contents) {
      exchange.payloads.push_back(make_payload(*groups_, content, TrafficClass::expert_sync,
                                               format_of(scenario_->strategy, content),
                                               {group_of(moe_layer, expert)}));
    }
    exchanges.push_back(std::move(exchange));
  }
}

bool moves_experts(const ExpertOwners& owners, std::int64_t round, std::int64_t rounds) {
  return owners.migration_period > 0 && (round + 1) % owners.migration_period == 0 && round + 1 < rounds;
}

std::optional<Op> ExpertTransfers::migration(const ExpertOwners& owners, std::int64_t round,
                                             std::int64_t rounds, std::vector<OpId> after) const {
  if (!moves_experts(owners, round, rounds)) return std::nullopt;
  const Strategy& strategy = scenario_->strategy;
  std::vector<Content> contents = {Content::parameter, Content::outer_moment1, Content::outer_moment2};
  contents.resize(static_cast<std::size_t>(
      migrated_contents_of(strategy.outer_optimizer, strategy.outer_state_on_migration)));
  std::vector<Exchange> moves;
  for (const Migration& move : migrations(owners.of_round(round), owners.of_round(round + 1))) {
    Exchange exchange{{move.sender, move.receiver}, {}};
    for (const Content content : contents) {
      exchange.payloads.push_back(make_payload(*groups_, content, TrafficClass::migration,
                                               format_of(strategy, content),
                                               {group_of(move.layer, move.expert)}));
    }
    moves.push_back(std::move(exchange));
  }
  Op migrate;
  migrate.name = "migrate experts";
  if (strategy.collective == Collective::store) {
    migrate.what = relayed_by_store(scenario_->sites(), std::move(moves));  // the node after all workers
  } else {
    migrate.what = Transfer{Pattern::point_to_point, strategy.collective, std::move(moves)};
  }
  migrate.after = std::move(after);
  return migrate;
}

Stage owners_stage(const Axes& axes, const Fixed& fixed, const DenseAndExperts& bytes) {
  if (axes.expert_overlap == axes.sites) return averaging_stage(axes, fixed, bytes.dense + bytes.experts);
  const double most_held = most_held_share(axes.sites, axes.expert_overlap, fixed.moe_layers, fixed.experts);
  const double held_bytes = bytes.experts * most_held;
  const double sent_of_experts = averaging_factor(fixed, axes.expert_overlap) * held_bytes;
  Stage stage;
  stage.latency_hops = averaging_hops(fixed, axes.sites);
  stage.bytes = averaging_factor(fixed, axes.sites) * bytes.dense + sent_of_experts;
  // Owners in fixed blocks exchange with the same few sites. Other sets of owners are assumed to spread
  // over all pairs.
  const double peers = std::max(axes.sites - 1.0, 1.0);
  const double expert_pair_bytes = fixed.placement == PlacementKind::fixed
                                       ? (averaging_pair_factor(fixed, axes.expert_overlap) * held_bytes)
                                       : (sent_of_experts / peers);
  stage.pair_bytes = averaging_pair_factor(fixed, axes.sites) * bytes.dense + expert_pair_bytes;
  stage.at_once = axes.expert_overlap > 1.0;
  return stage;
}

DenseAndExperts sent_to_owners(const Axes& axes, const Fixed& fixed, double bytes) {
  const double held_share = axes.expert_overlap / axes.sites;
  return {averaging_factor(fixed, axes.sites) * bytes * fixed.dense_elements,
          averaging_factor(fixed, axes.expert_overlap) * bytes * fixed.expert_elements * held_share};
}

double migrations_per_round(const Axes& axes, const Fixed& fixed, double rounds) {
  if (fixed.placement != PlacementKind::random) return 0.0;
  const std::int64_t migrations = migrations_of(std::llround(rounds), std::llround(axes.reshuffle_rounds));
  return static_cast<double>(migrations) / rounds;
}

double missing_bytes_of(const Axes& axes, const Fixed& fixed, double held) {
  const double of_layer = fixed.experts * axes.expert_overlap / axes.sites, fewer = std::floor(of_layer);
  const double bytes = bytes_per_parameter(axes, fixed);
  if (of_layer == fewer || fixed.moe_layers == 0)
    return fixed.migrated_contents * (1.0 - held) * fixed.expert_elements * held * bytes;
  const double with_more = fixed.experts * held - fewer;  // share of the layers that have one expert more
  const auto missing = [&](double experts) {
    return (1.0 - experts / fixed.experts) * experts / fixed.experts;
  };
  const double share = (1.0 - with_more) * missing(fewer) + with_more * missing(fewer + 1.0);
  return fixed.migrated_contents * share * fixed.expert_elements * bytes;
}

void add_migrations(PlanSummary& summary, const Axes& axes, const Fixed& fixed) {
  const double times = migrations_per_round(axes, fixed, summary.rounds);
  const double held_share = axes.expert_overlap / axes.sites;
  summary.sent.migration = times * missing_bytes_of(axes, fixed, held_share);
  if (fixed.placement != PlacementKind::random || fixed.collective == Collective::store) return;
  // Of the sites that hold most and fewest experts.
  const double most_held = most_held_share(axes.sites, axes.expert_overlap, fixed.moe_layers, fixed.experts);
  const double all_experts = fixed.moe_layers * fixed.experts;
  const double fewest_held = most_held > held_share ? most_held - 1.0 / all_experts : held_share;
  const double most_missing_bytes =
      std::max(missing_bytes_of(axes, fixed, most_held), missing_bytes_of(axes, fixed, fewest_held));
  Stage migration;
  // 0 if every site holds all experts: nothing migrates and no latency is incurred.
  migration.latency_hops = std::ceil(1.0 - held_share);
  migration.bytes = most_missing_bytes;
  migration.pair_bytes = most_missing_bytes / std::max(axes.sites - 1.0, 1.0);
  migration.times_per_round = times;
  summary.add(migration);
}

}  // namespace fomoe::costmodel
