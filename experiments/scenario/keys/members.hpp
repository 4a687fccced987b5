// Members of a scenario, as the rows of keys name them.
#pragma once
#include <algorithm>
#include <concepts>
#include <optional>
#include <string>
#include <vector>

#include "costmodel/formula/resolved.hpp"
#include "costmodel/inputs/scenario.hpp"
#include "experiments/scenario/keys/key_tables.hpp"

namespace fomoe::scenario {

using costmodel::Scenario;
using enum costmodel::Resolving;

template <class T>
void assign(T& member, double value) {
  if constexpr (costmodel::NamedEnum<T>)
    member = enum_names(T{})[static_cast<std::size_t>(value)].value;
  else
    member = static_cast<T>(value);
}
template <class T>
void assign(std::optional<T>& member, double value) {
  assign(member.emplace(), value);
}

template <class T>
MemberValue value_of(const T& member) {
  if constexpr (costmodel::NamedEnum<T>)
    return to_string(member);
  else if constexpr (std::integral<T> && !std::same_as<T, bool>)
    return static_cast<std::int64_t>(member);
  else
    return member;
}
template <class T>
MemberValue value_of(const std::optional<T>& member) {
  return member ? value_of(*member) : MemberValue();
}

/// The struct of a table in a scenario, or nullptr if the scenario does not have the table.
template <class Table, class AnyScenario>
auto* table_in(AnyScenario& scenario) {
  using namespace costmodel;
  if constexpr (std::same_as<Table, Workload>) return &scenario.workload;
  if constexpr (std::same_as<Table, Strategy>) return &scenario.strategy;
  if constexpr (std::same_as<Table, SiteGpus>) return &scenario.gpus;
  if constexpr (std::same_as<Table, StepVariation>) return &scenario.variation;
  if constexpr (std::same_as<Table, NetworkModel>) return &scenario.network;
  if constexpr (std::same_as<Table, ExtraTraffic>) return &scenario.traffic;
  if constexpr (std::same_as<Table, GpuPower>) return scenario.power ? &*scenario.power : nullptr;
  if constexpr (std::same_as<Table, Failures>) return scenario.failures ? &*scenario.failures : nullptr;
}

template <class Table, class Type>
Table table_type(Type Table::*);

/// A member of a table's struct. A sweep may set it where `settable`.
template <auto Field, bool (*settable)(const Scenario&) = nullptr>
constexpr KeyMember member = [] {
  using Table = decltype(table_type(Field));
  KeyMember made;
  made.set = [](Scenario& scenario, double value) {
    auto* table = table_in<Table>(scenario);
    if (table == nullptr) return false;
    assign(table->*Field, value);
    return settable == nullptr || settable(scenario);
  };
  made.get = [](const Scenario& scenario) {
    const auto* table = table_in<Table>(scenario);
    return table == nullptr ? MemberValue() : value_of(table->*Field);
  };
  using Type = std::remove_cvref_t<decltype(Table().*Field)>;
  if constexpr (costmodel::NamedEnum<Type>) made.names = costmodel::all_names<Type>;
  if constexpr (requires { typename Type::value_type; }) {
    if constexpr (costmodel::NamedEnum<typename Type::value_type>)
      made.names = costmodel::all_names<typename Type::value_type>;
  }
  return made;
}();

/// The same member, but not in the scenario's JSON.
constexpr KeyMember unwritten(KeyMember member) {
  member.get = nullptr;
  return member;
}

template <std::size_t N>
struct Text {
  char chars[N];
  constexpr Text(const char (&text)[N]) { std::copy_n(text, N, chars); }
};
template <Text... Names>
std::vector<std::string> names() {
  return {Names.chars...};
}
/// A choice of which only the reader of its table knows what its names mean.
template <Text... Names>
constexpr KeyMember one_of = {.names = names<Names...>};

}  // namespace fomoe::scenario
