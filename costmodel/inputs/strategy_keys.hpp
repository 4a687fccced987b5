// The keys of [strategy] that are one number, flag or choice. The reader, the JSON of a scenario, the notes
// on keys that a method ignores and the lists of choices all go through this table. A new key is its field in
// Strategy, a row here, and a row with its help in experiments/scenario/keys/training_keys.cpp.
#pragma once
#include <string_view>
#include <variant>

#include "costmodel/inputs/scenario.hpp"

namespace fomoe::costmodel {

/// The field that a key sets.
using StrategyField =
    std::variant<std::int64_t Strategy::*, int Strategy::*, bool Strategy::*, double Strategy::*,
                 std::optional<std::int64_t> Strategy::*, PlacementKind Strategy::*, Collective Strategy::*,
                 Granularity Strategy::*, RingOrder Strategy::*, OuterOptimizer Strategy::*,
                 OuterStateOnMigration Strategy::*, RouterModel Strategy::*, Sharding Strategy::*,
                 PipelineSchedule Strategy::*, FragmentPattern Strategy::*>;

struct StrategyKey {
  std::string_view name;
  StrategyField field;
  /// Only methods that list the key in `axes` use it; for others a changed value is reported as ignored.
  bool of_some_methods = false;
};

inline constexpr StrategyKey kStrategyKeys[] = {
    {"local_steps", &Strategy::local_steps},
    {"expert_overlap", &Strategy::expert_overlap},
    {"placement", &Strategy::placement, true},
    {"reshuffle_rounds", &Strategy::reshuffle_rounds, true},
    {"skip_token", &Strategy::skip_token},
    {"collective", &Strategy::collective, true},
    {"ring_order", &Strategy::ring_order},
    {"bucket_bytes", &Strategy::bucket_bytes},
    {"granularity", &Strategy::granularity},
    {"overlap_steps", &Strategy::overlap_steps, true},
    {"fragments", &Strategy::fragments, true},
    {"fragment_pattern", &Strategy::fragment_pattern, true},
    {"layerwise", &Strategy::layerwise, true},
    {"sharding", &Strategy::sharding, true},
    {"outer_optimizer", &Strategy::outer_optimizer, true},
    {"outer_state_on_migration", &Strategy::outer_state_on_migration, true},
    {"moment1_period", &Strategy::moment1_period, true},
    {"moment2_period", &Strategy::moment2_period, true},
    {"global_period", &Strategy::global_period, true},
    {"gossip_peers", &Strategy::gossip_peers, true},
    {"staleness", &Strategy::staleness, true},
    {"dynamic_local_steps", &Strategy::dynamic_local_steps, true},
    {"regions", &Strategy::regions},
    {"secure_aggregation", &Strategy::secure_aggregation},
    {"quorum", &Strategy::quorum, true},
    {"straggler_timeout", &Strategy::straggler_timeout_s, true},
    {"router", &Strategy::router, true},
    {"capacity_factor", &Strategy::capacity_factor, true},
    {"max_sites_per_token", &Strategy::max_sites_per_token, true},
    {"micro_batches", &Strategy::micro_batches, true},
    {"schedule", &Strategy::schedule, true},
    {"stage_sites", &Strategy::stage_sites, true},
    {"overlap_dispatch", &Strategy::overlap_dispatch, true},
    {"module_levels", &Strategy::module_levels, true},
    {"module_choices", &Strategy::module_choices, true},
};

}  // namespace fomoe::costmodel
