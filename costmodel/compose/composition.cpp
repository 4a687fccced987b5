#include "costmodel/compose/composition.hpp"

#include <algorithm>
#include <bit>
#include <map>

#include "costmodel/compose/ring_orders.hpp"
#include "costmodel/plan/method.hpp"
#include "costmodel/plan/regions.hpp"
#include "costmodel/plan/site_shares.hpp"
#include "platforms/support/input_error.hpp"

namespace fomoe::costmodel {

namespace {

Composed composed(const Scenario& scenario, const RoundPlan& plain) {
  Composed result{plain, {}};
  for (OpId id = 0; id < static_cast<OpId>(plain.ops.size()); ++id) result.last.push_back(id);
  const auto apply = [&](Composed next) {
    for (OpId& last : result.last) last = next.last[static_cast<std::size_t>(last)];
    result.round = std::move(next.round);
  };
  if (scenario.strategy.secure_aggregation) apply(with_masks(scenario, result.round));
  if (scenario.strategy.collective == Collective::hierarchical) apply(with_regions(scenario, result.round));
  return result;
}

bool composes(const Scenario& scenario) {
  return scenario.strategy.secure_aggregation || scenario.strategy.collective == Collective::hierarchical;
}

/// What sums of masked payloads do not hide, a sentence each.
std::vector<std::string> not_hidden(const Scenario& scenario) {
  std::vector<std::string> notes;
  if (scenario.sites() == 2)
    notes.emplace_back(
        "secure_aggregation hides nothing between two sites: each subtracts its own payload from the sum, "
        "and "
        "has that of the other one");
  else if (scenario.strategy.method->partial_experts && effective_overlap(scenario) == 2)
    notes.emplace_back(
        "secure_aggregation does not hide the experts of two owners (O_e = 2) from each other: each "
        "subtracts its "
        "own payload from the sum, and has that of the other one");
  if (scenario.strategy.method->partial_experts && scenario.strategy.placement == PlacementKind::random)
    notes.emplace_back(
        "secure_aggregation does not hide experts that migrate: their new owners receive them as "
        "they are");
  return notes;
}

}  // namespace

Plan composed_plan(const Scenario& scenario) {
  Plan plan = with_ring_orders(scenario, scenario.strategy.method->plan(scenario));
  if (!composes(scenario)) return plan;
  if (scenario.strategy.collective == Collective::hierarchical)
    plan.notes.push_back("hierarchical collective: " +
                         regions_note(scenario.platform, scenario.strategy.regions));
  if (scenario.strategy.secure_aggregation)
    for (const std::string& note : not_hidden(scenario)) plan.notes.push_back(note);
  plan.round = [scenario, plain = plan.round](std::int64_t index) {
    Composed result = composed(scenario, plain(index));
    std::map<std::int64_t, std::vector<OpId>> last;  // rounds back → Composed::last of that earlier round
    for (Op& op : result.round.ops) {
      for (EarlierOp& before : op.after_earlier) {
        if (before.rounds_back > index) continue;  // refers to a round before the first one: nobody waits
        auto [found, is_new] = last.try_emplace(before.rounds_back);
        if (is_new) found->second = composed(scenario, plain(index - before.rounds_back)).last;
        if (before.op < static_cast<OpId>(found->second.size()))
          before.op = found->second[static_cast<std::size_t>(before.op)];
      }
    }
    return result.round;
  };
  return plan;
}

namespace {

// The method's plan with as many experts as sites. Which operations a round has, and among how many sites,
// does not depend on the number of experts, and a plan with 128 of them in each layer takes long to make.
Plan small_plan(const Scenario& scenario) {
  Scenario small = scenario;
  const auto sites = static_cast<std::int64_t>(scenario.sites());
  if (scenario.strategy.placement != PlacementKind::affinity && small.model.experts > sites) {
    small.model.experts = sites;
    small.model.active_experts = std::min(small.model.active_experts, sites);
  }
  return scenario.strategy.method->plan(small);
}

// Recursive halving requires that every group has a power of two of nodes.
void check_recursive(const Scenario& scenario) {
  const Plan plan = small_plan(scenario);
  for (const RoundClass& rounds : plan.classes) {
    for (const Op& op : plan.round(rounds.round_at(0)).ops) {
      const auto* transfer = std::get_if<Transfer>(&op.what);
      if (transfer == nullptr || transfer->collective != Collective::recursive) continue;
      const bool halves = transfer->pattern == Pattern::all_reduce ||
                          transfer->pattern == Pattern::reduce_scatter ||
                          transfer->pattern == Pattern::all_gather;
      for (const Exchange& exchange : transfer->exchanges) {
        if (halves && std::has_single_bit(exchange.nodes.size())) continue;
        throw InputError("strategy.collective", "\"recursive\"",
                         halves ? "\"ring\" or \"direct\" among " + std::to_string(exchange.nodes.size()) +
                                      " sites, because recursive halving requires a power of two"
                                : "\"ring\" or \"direct\" with " + scenario.strategy.method->name +
                                      ", because only all-reduce, reduce-scatter and all-gather can be "
                                      "recursive",
                         "\"direct\"");
      }
    }
  }
}

}  // namespace

void check_composition(const Scenario& scenario) {
  if (scenario.strategy.collective == Collective::recursive) check_recursive(scenario);
  if (!composes(scenario)) return;
  const Strategy& strategy = scenario.strategy;
  const int sites = scenario.sites();
  if (strategy.collective == Collective::hierarchical &&
      (strategy.regions < 2 || strategy.regions > sites || sites % strategy.regions != 0)) {
    int nearest = std::clamp(strategy.regions, 2, std::max(2, sites));
    while (nearest > 1 && sites % nearest != 0) --nearest;
    throw InputError("strategy.regions", std::to_string(strategy.regions),
                     "at least 2 regions that divide the " + std::to_string(sites) +
                         " sites into equal groups, as collective = \"hierarchical\" requires",
                     std::to_string(nearest > 1 ? nearest : sites));
  }
  const Method& method = *strategy.method;
  const Plan plan = small_plan(scenario);
  for (const RoundClass& rounds : plan.classes) {
    const RoundPlan round = plan.round(rounds.round_at(0));
    const std::vector<OpId>* start_of_sums = nullptr;
    bool together = method.inside_step == nullptr || !method.inside_step(scenario);
    for (const Op& op : round.ops) {
      const auto* transfer = std::get_if<Transfer>(&op.what);
      if (transfer == nullptr) continue;
      if (transfer->collective == Collective::hierarchical && transfer->pattern != Pattern::all_reduce &&
          transfer->pattern != Pattern::point_to_point)
        throw InputError("strategy.collective", "\"hierarchical\"",
                         "\"ring\" or \"direct\" with " + strategy.method->name +
                             ", because only all-reduces can be hierarchical",
                         "\"ring\"");
      if (transfer->pattern != Pattern::all_reduce) continue;
      if (start_of_sums != nullptr && *start_of_sums != op.after) together = false;
      start_of_sums = &op.after;
    }
    if (strategy.secure_aggregation && (start_of_sums == nullptr || !together))
      throw InputError(
          "strategy.secure_aggregation", "true",
          "false with " + strategy.method->name +
              ", because secure aggregation masks all-reduces that start together, once per round",
          "false");
  }
}

}  // namespace fomoe::costmodel
