#include "experiments/json/json_object.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "experiments/scenario/toml/document.hpp"
#include "experiments/text/nesting.hpp"
#include "experiments/text/suggest.hpp"
#include "platforms/support/whole_file.hpp"

namespace fomoe::scenario {
namespace {

bool is_count(const Json& value, std::int64_t least, std::int64_t most) {
  if (!value.is_number_integer()) return false;
  if (value.is_number_unsigned() && value.get<std::uint64_t>() > 1ULL << 62) return false;
  return value.get<std::int64_t>() >= least && value.get<std::int64_t>() <= most;
}

Json parse(const std::string& path, const JsonKind& kind) {
  const std::optional<std::string> content = whole_file(path);
  if (!content) fail(path + ":1", kind.subject, "no readable file", kind.article, kind.remedy);
  const std::string& text = *content;
  if (const std::string excess = excess_in_json(text); !excess.empty())
    fail(path + ":1", kind.subject, excess, kind.article, kind.remedy);
  try {
    return Json::parse(text);
  } catch (const Json::parse_error& error) {
    const auto bytes = static_cast<std::ptrdiff_t>(std::min(error.byte, text.size()));
    const auto line = 1 + std::count(text.begin(), text.begin() + bytes, '\n');
    fail(fmt::format("{}:{}", path, line), kind.subject, "text that is not valid JSON", kind.article,
         kind.remedy);
  } catch (const Json::out_of_range&) {  // a number such as 1e999
    fail(path + ":1", kind.subject, "a number that is too large", "finite numbers", kind.remedy);
  }
}

}  // namespace

JsonObject::JsonObject(const std::string& file, const JsonKind& kind, std::string where, const Json& object,
                       const std::vector<std::string>& keys)
    : file_(file), kind_(kind), where_(std::move(where)), object_(object) {
  if (!object.is_object())
    fail(file_, where_.empty() ? kind.subject : where_, object.type_name(), "an object", kind.remedy);
  for (const auto& item : object.items()) {
    if (std::find(keys.begin(), keys.end(), item.key()) == keys.end())
      fail(file_, key(item.key()), "an unknown key", "one of " + joined(keys), kind.remedy,
           nearest(item.key(), keys));
  }
}

std::string JsonObject::key(const std::string& name) const {
  return where_.empty() ? name : where_ + '.' + name;
}

const Json& JsonObject::at(const std::string& name, const std::string& expected) const {
  const auto found = object_.find(name);
  if (found == object_.end()) fail(file_, key(name), "nothing", expected, kind_.remedy);
  return *found;
}

std::string JsonObject::text(const std::string& name) const {
  const Json& value = at(name, "a string");
  if (!value.is_string()) refuse_value(name, value, "a string");
  return value.get<std::string>();
}

std::int64_t JsonObject::count(const std::string& name, std::int64_t least, std::int64_t most) const {
  const std::string expected = most >= 1LL << 62 ? fmt::format("a whole number of at least {}", least)
                                                 : fmt::format("a whole number from {} to {}", least, most);
  const Json& value = at(name, expected);
  if (!is_count(value, least, most)) refuse_value(name, value, expected);
  return value.get<std::int64_t>();
}

double JsonObject::number(const std::string& name, const std::string& expected) const {
  const Json& value = at(name, expected);
  if (!value.is_number() || !std::isfinite(value.get<double>()) || value.get<double>() < 0)
    refuse_value(name, value, expected);
  return value.get<double>();
}

bool JsonObject::boolean(const std::string& name) const {
  const Json& value = at(name, "true or false");
  if (!value.is_boolean()) refuse_value(name, value, "true or false");
  return value.get<bool>();
}

const Json& JsonObject::array(const std::string& name) const {
  const Json& value = at(name, "an array");
  if (!value.is_array()) refuse_value(name, value, "an array");
  return value;
}

const Json& JsonObject::filled_array(const std::string& name) const {
  const Json& value = at(name, "an array with at least one entry");
  if (!value.is_array() || value.empty()) refuse_value(name, value, "an array with at least one entry");
  return value;
}

std::vector<std::int64_t> JsonObject::counts(const std::string& name, std::int64_t least, std::int64_t most,
                                             const std::string& expected) const {
  std::vector<std::int64_t> values;
  for (const Json& value : array(name)) {
    if (!is_count(value, least, most)) refuse_value(name, value, expected);
    values.push_back(value.get<std::int64_t>());
  }
  return values;
}

void JsonObject::refuse_value(const std::string& name, const Json& value, const std::string& expected) const {
  refuse(name,
         value.is_structured() ? (value.empty() ? "an empty " : "") + std::string(value.type_name())
                               : value.dump(-1, ' ', false, Json::error_handler_t::replace),
         expected);
}

void JsonObject::refuse(const std::string& name, const std::string& got, const std::string& expected) const {
  fail(file_, key(name), got, expected, kind_.remedy);
}

JsonObject open_object(const std::string& file, const JsonKind& kind, std::string where, const Json& object) {
  std::vector<std::string> keys;
  if (object.is_object()) {
    for (const auto& item : object.items()) keys.push_back(item.key());
  }
  return {file, kind, std::move(where), object, keys};
}

Json read_json_file(const std::string& path, const JsonKind& kind) { return read_any_json(path, {&kind}); }

Json read_any_json(const std::string& path, const std::vector<const JsonKind*>& kinds) {
  const JsonKind& first = *kinds.front();
  Json json = parse(path, first);
  const bool has = json.is_object() && json.contains("schema") && json["schema"].is_string();
  const std::string schema = has ? json["schema"].get<std::string>() : "";
  std::vector<std::string> expected;
  for (const JsonKind* kind : kinds) {
    if (has && schema == kind->schema) return json;
    expected.push_back(std::string("\"") + kind->schema + '"');
  }
  // The schema is checked first, so that for a file of another kind the error names the schema and not a key.
  fail(path + ":1", "schema", has ? '"' + schema + '"' : "nothing", joined(expected, " or "), first.remedy);
}

}  // namespace fomoe::scenario
