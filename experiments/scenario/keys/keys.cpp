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

const std::vector<Key>& own_site_keys() {
  static const std::vector<Key> all = [] {
    std::vector<Key> keys;
    for (const Key& key : scenario_keys())
      if (key.table == "site") keys.push_back(key);
    for (Key key : scenario_keys()) {
      const bool varies =
          key.name == "step_variation" || key.name == "draw_samples" || key.name.starts_with("straggler");
      if (key.table != "compute" || varies) continue;
      key.table = "site";
      key.member.set = nullptr;  // which sets the member of all sites
      key.member.get = nullptr;
      keys.push_back(key);
    }
    return keys;
  }();
  return all;
}

ElementKey element_key(const std::string& dotted_name) {
  const auto parts = [&](std::size_t begin) {
    const std::size_t last = dotted_name.rfind('.');
    return std::pair{dotted_name.substr(begin, last <= begin ? 0 : last - begin),
                     dotted_name.substr(last + 1)};
  };
  if (dotted_name.starts_with("site.")) {
    const auto [site, name] = parts(5);
    if (!site.empty()) return {"site", {{"name", site}}, name};
  }
  if (dotted_name.starts_with("path.")) {
    const auto [ends, name] = parts(5);
    const std::size_t dot = ends.find('.');
    if (dot != std::string::npos && dot > 0 && dot + 1 < ends.size())
      return {"path", {{"from", ends.substr(0, dot)}, {"to", ends.substr(dot + 1)}}, name};
  }
  return {};
}

const Key* find_key(std::string_view dotted_name) {
  if (const ElementKey element = element_key(std::string(dotted_name)); !element.table.empty()) {
    const std::span<const Key> keys =
        element.table == "site" ? std::span<const Key>(own_site_keys()) : scenario_keys();
    for (const Key& key : keys)
      if (key.table == element.table && key.name == element.name) return &key;
    return nullptr;
  }
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
