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

namespace {

/// To whom a site sends its experts in a ring of their owners, or directly.
struct FlowsAmongOwners {
  /// So many equal flows in each step take as much of the site's port as its flows do, which differ in size:
  /// 1 ÷ Σ (share of the bytes)².
  double count = 1;
  /// Shares of the site's experts: those of which the peer that gets most of them gets a part, and those of
  /// which the site next in the ring of all sites does.
  double largest_share = 1, share_to_next = 1;
};

FlowsAmongOwners flows_among_owners(const Axes& axes, const Fixed& fixed) {
  const double owners = axes.expert_overlap, peers = axes.sites - 1.0;
  if (fixed.placement == PlacementKind::fixed && !leaves_remainder(axes.sites, owners)) return {};
  if (fixed.placement == PlacementKind::fixed || fixed.placement == PlacementKind::rotated) {
    // The owners of an expert are consecutive sites: its last owner sends to the first one, all others to the
    // next site. Each site is the last owner of one expert in O_e.
    const double next = (owners - 1.0) / owners;
    return {1.0 / (next * next + (1.0 - next) * (1.0 - next)), next, next};
  }
  // Each owner is the next one of a random number of the site's n experts: Σ² of its share is
  // 1/n + (1 − 1/n)·Σ p². The numbers are binomial, and the largest one of N pairs is about
  // n·p + √(2·n·p·(1 − p)·ln N). In a direct exchange, each of the O_e − 1 others gets an expert.
  const bool direct = fixed.collective == Collective::direct;
  const double drawn = std::max(1.0, fixed.moe_layers * fixed.experts * owners / axes.sites);
  const double share = (owners - 1.0) / peers;  // also that of the next site in a ring
  double sum_of_squares = direct ? 1.0 / peers : 0.0;
  if (!direct)
    for (const double probability :
         next_owner_probabilities(static_cast<int>(axes.sites), static_cast<int>(owners)))
      sum_of_squares += probability * probability;
  const double pairs = direct || owners == 2.0 ? axes.sites * peers : axes.sites;
  const double spread = std::sqrt(2.0 * drawn * share * (1.0 - share) * std::log(pairs));
  const double largest = std::min(drawn, drawn * share + spread);
  return {1.0 / (1.0 / drawn + (1.0 - 1.0 / drawn) * sum_of_squares), largest / drawn,
          direct ? largest / drawn : share};
}

}  // namespace

Stage owners_stage(const Axes& axes, const Fixed& fixed, const DenseAndExperts& bytes) {
  if (axes.expert_overlap == axes.sites) return averaging_stage(axes, fixed, bytes.dense + bytes.experts);
  if (axes.expert_overlap == 1.0) return averaging_stage(axes, fixed, bytes.dense);
  const double most_held = most_held_share(axes.sites, axes.expert_overlap, fixed.moe_layers, fixed.experts);
  const double held_bytes = bytes.experts * most_held;
  const double sent_of_experts = averaging_factor(fixed, axes.expert_overlap) * held_bytes;
  Stage stage;
  stage.latency_hops = averaging_hops(fixed, axes.sites);
  stage.bytes = averaging_factor(fixed, axes.sites) * bytes.dense + sent_of_experts;
  FlowsAmongOwners flows = flows_among_owners(axes, fixed);
  const bool in_ring_or_direct =
      fixed.collective == Collective::ring || fixed.collective == Collective::direct;
  // Assumed: in other collectives, the peers of the steps are the same sites for all experts of a fixed
  // placement, and spread over all sites otherwise.
  if (!in_ring_or_direct)
    flows.largest_share = flows.share_to_next =
        fixed.placement == PlacementKind::fixed ? 1.0 : 1.0 / (axes.sites - 1.0);
  stage.uneven = !in_ring_or_direct || flows.count > 1.0;
  stage.drawn = fixed.placement == PlacementKind::random || fixed.placement == PlacementKind::affinity;
  const double expert_bytes = averaging_pair_factor(fixed, axes.expert_overlap) * held_bytes;  // to one peer
  stage.pair_bytes =
      std::max(averaging_pair_factor(fixed, axes.sites) * bytes.dense + flows.share_to_next * expert_bytes,
               flows.largest_share * expert_bytes);
  if (averaging_hops(fixed, axes.expert_overlap) < stage.latency_hops)
    stage.beside = {averaging_hops(fixed, axes.expert_overlap), sent_of_experts, flows.count,
                    flows.largest_share};
  if (fixed.collective == Collective::ring) stage.between = Between::owners;
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
  migration.drawn = times > 0 && migration.bytes > 0;
  summary.add(migration);
}

}  // namespace fomoe::costmodel
