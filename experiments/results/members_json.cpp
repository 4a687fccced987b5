#include <cmath>
#include <variant>

#include "experiments/results/json_values.hpp"
#include "experiments/scenario/keys/keys.hpp"

namespace fomoe::scenario {

namespace {

/// JSON has no infinity: null stands for what never happens.
Json value_json(const MemberValue& value) {
  return std::visit(
      []<class T>(const T& held) -> Json {
        if constexpr (std::is_same_v<T, std::monostate>) return nullptr;
        if constexpr (std::is_same_v<T, double>)
          if (!std::isfinite(held)) return nullptr;
        if constexpr (!std::is_same_v<T, std::monostate>) return held;
      },
      value);
}

/// Whether a member is 0 although no scenario can set its key to 0.
bool stands_for_absence(const Key& key, const Json& value) {
  const bool may_be_0 = key.kind == Kind::latency || (key.kind == Kind::count && key.min <= 0);
  return value.is_number() && value == 0 && !may_be_0;
}

}  // namespace

Json members_json(std::string_view table, const costmodel::Scenario& scenario,
                  std::initializer_list<const char*> always) {
  Json json = Json::object();
  for (const char* name : always) json[name] = nullptr;
  for (const Key& key : scenario_keys()) {
    if (key.table != table || key.member.get == nullptr) continue;
    const Json value = value_json(key.member.get(scenario));
    const std::string name(key.json.empty() ? key.name : key.json);
    if (json.contains(name) || !(value.is_null() || stands_for_absence(key, value))) json[name] = value;
  }
  return json;
}

}  // namespace fomoe::scenario
