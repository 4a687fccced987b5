// The keys of [strategy] that only some methods use: those that list the key in Method::axes. For other
// methods a changed value is reported as ignored.
#pragma once
#include <string_view>

#include "costmodel/inputs/scenario.hpp"

namespace fomoe::costmodel {

template <auto Field>
bool differs_from_default(const Strategy& strategy) {
  return strategy.*Field != Strategy().*Field;
}

struct StrategyKey {
  std::string_view name;
  bool (*changed)(const Strategy& strategy);
};

inline constexpr StrategyKey kKeysOfSomeMethods[] = {
    {"placement", differs_from_default<&Strategy::placement>},
    {"reshuffle_rounds", differs_from_default<&Strategy::reshuffle_rounds>},
    {"collective", differs_from_default<&Strategy::collective>},
    {"overlap_steps", differs_from_default<&Strategy::overlap_steps>},
    {"fragments", differs_from_default<&Strategy::fragments>},
    {"fragment_pattern", differs_from_default<&Strategy::fragment_pattern>},
    {"layerwise", differs_from_default<&Strategy::layerwise>},
    {"sharding", differs_from_default<&Strategy::sharding>},
    {"outer_optimizer", differs_from_default<&Strategy::outer_optimizer>},
    {"outer_state_on_migration", differs_from_default<&Strategy::outer_state_on_migration>},
    {"moment1_period", differs_from_default<&Strategy::moment1_period>},
    {"moment2_period", differs_from_default<&Strategy::moment2_period>},
    {"global_period", differs_from_default<&Strategy::global_period>},
    {"gossip_peers", differs_from_default<&Strategy::gossip_peers>},
    {"staleness", differs_from_default<&Strategy::staleness>},
    {"dynamic_local_steps", differs_from_default<&Strategy::dynamic_local_steps>},
    {"quorum", differs_from_default<&Strategy::quorum>},
    {"straggler_timeout", differs_from_default<&Strategy::straggler_timeout_s>},
    {"router", differs_from_default<&Strategy::router>},
    {"capacity_factor", differs_from_default<&Strategy::capacity_factor>},
    {"max_sites_per_token", differs_from_default<&Strategy::max_sites_per_token>},
    {"micro_batches", differs_from_default<&Strategy::micro_batches>},
    {"schedule", differs_from_default<&Strategy::schedule>},
    {"stage_sites", differs_from_default<&Strategy::stage_sites>},
    {"overlap_dispatch", differs_from_default<&Strategy::overlap_dispatch>},
    {"module_levels", differs_from_default<&Strategy::module_levels>},
    {"module_choices", differs_from_default<&Strategy::module_choices>},
};

}  // namespace fomoe::costmodel
