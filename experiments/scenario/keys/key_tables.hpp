// The parts of the table of scenario keys: one file for each table of a scenario.
#pragma once
#include "experiments/scenario/keys/keys.hpp"

namespace fomoe::scenario {

inline constexpr double kMaxSites = 16384, kMaxGpus = 1e5, kMaxLayers = 1e5;

/// The rows as keys of the table, apart from those that name another table.
std::vector<Key> keys_in(std::string_view table, std::span<const Key> rows);

std::vector<Key> top_level_keys();
std::vector<Key> model_keys();
std::vector<Key> workload_keys();
std::vector<Key> strategy_keys();
std::vector<Key> compute_keys();
std::vector<Key> site_keys();
std::vector<Key> platform_keys();
std::vector<Key> network_model_keys();
std::vector<Key> calibration_keys();
std::vector<Key> traffic_keys();
std::vector<Key> prices_keys();
std::vector<Key> energy_keys();
std::vector<Key> quality_keys();
std::vector<Key> failures_keys();
std::vector<Key> trainer_keys();

}  // namespace fomoe::scenario
