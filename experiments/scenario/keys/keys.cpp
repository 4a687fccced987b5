#include "experiments/scenario/keys/keys.hpp"

#include <algorithm>

#include "experiments/scenario/keys/key_tables.hpp"

namespace fomoe::scenario {

std::span<const Key> scenario_keys() {
  static const std::vector<Key> all = [] {
    std::vector<Key> keys;
    for (const auto part : {training_keys(), site_keys(), run_keys()})
      keys.insert(keys.end(), part.begin(), part.end());
    return keys;
  }();
  return all;
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
