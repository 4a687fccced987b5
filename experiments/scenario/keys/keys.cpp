#include "experiments/scenario/keys/keys.hpp"

#include <algorithm>

#include "experiments/scenario/keys/key_tables.hpp"

namespace fomoe::scenario {

std::span<const Key> scenario_keys() {
  static const std::vector<Key> all = [] {
    std::vector<Key> keys;
    for (const auto table : {top_level_keys, model_keys, workload_keys, strategy_keys, compute_keys,
                             site_keys, platform_keys, network_model_keys, calibration_keys, traffic_keys,
                             prices_keys, energy_keys, quality_keys, failures_keys, trainer_keys}) {
      const std::vector<Key> part = table();
      keys.insert(keys.end(), part.begin(), part.end());
    }
    return keys;
  }();
  return all;
}

std::vector<Key> keys_in(std::string_view table, std::span<const Key> rows) {
  std::vector<Key> keys(rows.begin(), rows.end());
  for (Key& key : keys)
    if (key.table.empty()) key.table = table;
  return keys;
}

const Key* find_key(std::string_view dotted_name) {
  for (const Key& key : scenario_keys())
    if (dotted(key) == dotted_name) return &key;
  return nullptr;
}

bool is_table(std::span<const Key> keys, std::string_view name) {
  return std::any_of(keys.begin(), keys.end(), [&](const Key& key) { return key.table == name; });
}

std::pair<std::string, std::string> table_and_name(const std::string& key) {
  const std::size_t last = key.rfind('.');
  if (last == std::string::npos) return {"", key};
  const std::size_t dot = is_table(scenario_keys(), key.substr(0, last)) ? last : key.find('.');
  return {key.substr(0, dot), key.substr(dot + 1)};
}

}  // namespace fomoe::scenario
