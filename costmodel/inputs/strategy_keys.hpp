// The keys of [strategy] that only some methods use: those that list the key in Method::axes. For other
// methods a changed value is reported as ignored.
#pragma once
#include <string_view>
#include <variant>

#include "costmodel/inputs/scenario.hpp"

namespace fomoe::costmodel {

/// The field that a key sets.
using StrategyField =
    std::variant<std::int64_t Strategy::*, int Strategy::*, bool Strategy::*, double Strategy::*,
                 std::optional<std::int64_t> Strategy::*, PlacementKind Strategy::*, Collective Strategy::*,
                 OuterOptimizer Strategy::*, OuterStateOnMigration Strategy::*, RouterModel Strategy::*,
                 Sharding Strategy::*, PipelineSchedule Strategy::*, FragmentPattern Strategy::*>;

struct StrategyKey {
  std::string_view name;
  StrategyField field;
};

inline constexpr StrategyKey kKeysOfSomeMethods[] = {
    {"placement", &Strategy::placement},
    {"reshuffle_rounds", &Strategy::reshuffle_rounds},
    {"collective", &Strategy::collective},
    {"overlap_steps", &Strategy::overlap_steps},
    {"fragments", &Strategy::fragments},
    {"fragment_pattern", &Strategy::fragment_pattern},
    {"layerwise", &Strategy::layerwise},
    {"sharding", &Strategy::sharding},
    {"outer_optimizer", &Strategy::outer_optimizer},
    {"outer_state_on_migration", &Strategy::outer_state_on_migration},
    {"moment1_period", &Strategy::moment1_period},
    {"moment2_period", &Strategy::moment2_period},
    {"global_period", &Strategy::global_period},
    {"gossip_peers", &Strategy::gossip_peers},
    {"staleness", &Strategy::staleness},
    {"dynamic_local_steps", &Strategy::dynamic_local_steps},
    {"quorum", &Strategy::quorum},
    {"straggler_timeout", &Strategy::straggler_timeout_s},
    {"router", &Strategy::router},
    {"capacity_factor", &Strategy::capacity_factor},
    {"max_sites_per_token", &Strategy::max_sites_per_token},
    {"micro_batches", &Strategy::micro_batches},
    {"schedule", &Strategy::schedule},
    {"stage_sites", &Strategy::stage_sites},
    {"overlap_dispatch", &Strategy::overlap_dispatch},
    {"module_levels", &Strategy::module_levels},
    {"module_choices", &Strategy::module_choices},
};

}  // namespace fomoe::costmodel
