#include "experiments/scenario/json_schema.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string_view>
#include <vector>

#include "experiments/scenario/keys/keys.hpp"
#include "experiments/scenario/sections/sections.hpp"

namespace fomoe::scenario {
namespace {

using Json = nlohmann::ordered_json;  // keeps the order of the table of keys

/// Tables without which no scenario is complete, whatever its method.
constexpr const char* kNeededTables[] = {"model", "workload", "strategy", "compute", "platform"};

// A number as the parser reads it; a number above zero has a digit other than 0.
constexpr const char* kNumber = R"(([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?)";
constexpr const char* kAboveZero =
    R"(([0-9]*[1-9][0-9]*\.?[0-9]*|[0-9]*\.[0-9]*[1-9][0-9]*)([eE][+-]?[0-9]+)?)";

// Numbers above zero and up to 100, also in exponential form, in which a pattern cannot see how large they
// are.
constexpr const char* kUpTo100 = R"((0*100(\.0*)?|0*[1-9][0-9]?(\.[0-9]*)?|0*\.[0-9]*[1-9][0-9]*|)"
                                 R"(([0-9]*[1-9][0-9]*\.?[0-9]*|[0-9]*\.[0-9]*[1-9][0-9]*)[eE][+-]?[0-9]+))";

Json text_like(const std::string& pattern) {
  return {{"type", "string"}, {"pattern", "^ *" + pattern + " *$"}};
}

Json quantity(const char* number, Quantity of) {
  std::string units;
  for (const std::string& unit : unit_names(of)) units += (units.empty() ? "" : "|") + unit;
  return text_like(fmt::format("{} *({})", number, units));
}

/// A whole number without a decimal point in the schema.
Json bound(double value) {
  if (value == std::floor(value)) return static_cast<std::int64_t>(value);
  return value;
}

Json share_up_to(double most, bool zero = false) {
  const char* least = zero ? "minimum" : "exclusiveMinimum";
  return {{"anyOf", Json::array({Json{{"type", "number"}, {least, 0}, {"maximum", bound(most)}},
                                 text_like(std::string(most == 1 ? kUpTo100 : kAboveZero) + " *%")})}};
}

Json words() { return {{"type", "array"}, {"items", {{"type", "string"}}}}; }

Json form_of(const Key& key) {
  if (const auto of = quantity_of(key.kind))
    return quantity(key.kind == Kind::latency ? kNumber : kAboveZero, *of);
  switch (key.kind) {
    case Kind::text: {
      Json text = {{"type", "string"}, {"minLength", 1}};
      // A list of names may also be an array.
      if (key.name == "use_sites") return {{"anyOf", Json::array({text, words()})}};
      return text;
    }
    case Kind::choice:
      return {{"type", "string"}, {"enum", key.member.names()}};
    case Kind::count:
      // 1e9 is a whole number for JSON Schema too.
      return {{"type", "integer"}, {"minimum", bound(key.min)}, {"maximum", bound(key.max)}};
    case Kind::boolean:
      return {{"type", "boolean"}};
    case Kind::money:
      return text_like(std::string(kNumber) + " *[A-Z]{3}");
    case Kind::share:
      return share_up_to(std::min(1.0, key.max), key.min == 0);
    case Kind::multiple:
      return share_up_to(key.max);
    case Kind::factor:
      return {{"type", "number"}, {"minimum", 1}, {"maximum", bound(key.max)}};
    case Kind::words:
      return words();
    default:
      return Json::object();
  }
}

/// A value of the table of keys, which is TOML; strings, numbers and booleans have the same form in JSON.
Json value_of(std::string_view toml) {
  const Json value = Json::parse(toml, nullptr, /*allow_exceptions=*/false);
  return value.is_discarded() ? Json(toml) : value;
}

Json schema_of(const Key& key) {
  Json schema = form_of(key);
  std::string text(key.sentence);
  text[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(text[0])));
  if (!key.absent.empty()) text += fmt::format(". If the key is absent: {}", key.absent);
  schema["description"] = fmt::format("{}. Value: {}.", text, expected_value(key));
  if (!key.fallback.empty()) schema["default"] = value_of(key.fallback);
  schema["examples"] = Json::array({value_of(key.example)});
  return schema;
}

bool is_required(const Key& key) { return key.fallback.empty() && key.absent.empty(); }

Json empty_table() {
  return {{"type", "object"}, {"additionalProperties", false}, {"properties", Json::object()}};
}

void add_key(Json& table, const Key& key) {
  table["properties"][std::string(key.name)] = schema_of(key);
  if (is_required(key)) table["required"].push_back(key.name);
}

}  // namespace

std::string json_schema() {
  Json root = empty_table();
  for (const Key& key : scenario_keys()) {
    if (key.table == "site" || key.table == "path") continue;  // own_site_keys() has these and more
    Json* table = &root;
    std::string_view path = key.table;
    while (!path.empty()) {  // "strategy.compression" is a table in a table
      const std::size_t dot = path.find('.');
      Json& inner = (*table)["properties"][std::string(path.substr(0, dot))];
      if (inner.is_null()) inner = empty_table();
      table = &inner;
      path = dot == std::string_view::npos ? "" : path.substr(dot + 1);
    }
    add_key(*table, key);
  }
  Json site = empty_table();
  for (const Key& key : own_site_keys()) add_key(site, key);
  site["required"] = Json::array({"name"});  // the others are those of [compute] unless they are given
  root["properties"]["site"] = {{"type", "array"}, {"items", std::move(site)}};
  Json path = empty_table();
  for (const Key& key : scenario_keys())
    if (key.table == "path") add_key(path, key);
  path["required"] = Json::array({"from", "to"});
  root["properties"]["path"] = {{"type", "array"}, {"items", std::move(path)}};
  root["required"] = kNeededTables;

  Json schema = {{"$schema", "https://json-schema.org/draft/2020-12/schema"},
                 {"title", "fomoe scenario"},
                 {"description", "A scenario of fomoe. Quantities are strings with a unit."}};
  schema.update(root);
  return schema.dump(2) + '\n';
}

}  // namespace fomoe::scenario
