#include "experiments/scenario/toml/json_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <utility>

#include "experiments/scenario/toml/document.hpp"
#include "experiments/text/nesting.hpp"

namespace fomoe::scenario {
namespace {

using Json = nlohmann::ordered_json;  // keeps the order of the keys

unsigned line_at(const std::string& text, std::size_t position) {
  const auto end = text.begin() + static_cast<std::ptrdiff_t>(std::min(position, text.size()));
  return 1 + static_cast<unsigned>(std::count(text.begin(), end, '\n'));
}

/// Converts one file, and finds the line of each key: the next place at which the key's name stands in
/// quotes.
class Converter {
 public:
  Converter(const std::string& path, const std::string& text) : path_(path), text_(text) {}

  void add(const Json& object, const std::string& inside, toml::table& table) {
    for (const auto& member : object.items()) {
      const std::string& name = member.key();
      const Json& value = member.value();
      const std::string key = inside.empty() ? name : fmt::format("{}.{}", inside, name);
      const std::size_t found = text_.find('"' + name + '"', position_);
      if (found != std::string::npos) position_ = found + name.size() + 2;
      lines_[key] = line_at(text_, position_);
      if (value.is_object()) {
        toml::table inner;
        add(value, key, inner);
        table.insert(name, std::move(inner));
      } else if (value.is_array()) {
        toml::array list;
        for (const Json& entry : value) add(entry, key, list);
        table.insert(name, std::move(list));
      } else {
        insert(value, key, [&](auto&& plain) { table.insert(name, plain); });
      }
    }
  }

  [[nodiscard]] std::map<std::string, unsigned> lines() && { return std::move(lines_); }

 private:
  void add(const Json& entry, const std::string& key, toml::array& list) {
    if (entry.is_object()) {
      toml::table inner;
      add(entry, key, inner);
      list.push_back(std::move(inner));
    } else if (entry.is_array()) {
      toml::array inner;
      for (const Json& each : entry) add(each, key, inner);
      list.push_back(std::move(inner));
    } else {
      insert(entry, key, [&](auto&& plain) { list.push_back(plain); });
    }
  }

  template <class Insert>
  void insert(const Json& value, const std::string& key, const Insert& insert_value) const {
    if (value.is_string()) return insert_value(value.get<std::string>());
    if (value.is_boolean()) return insert_value(value.get<bool>());
    if (value.is_number_unsigned() && value.get<std::uint64_t>() > INT64_MAX)
      return insert_value(value.get<double>());
    if (value.is_number_integer()) return insert_value(value.get<std::int64_t>());
    if (value.is_number()) return insert_value(value.get<double>());
    fail(fmt::format("{}:{}", path_, lines_.at(key)), key, "null",
         "a value, or no such key (the scenario of a run's report is read from the report itself)",
         "\"local_steps\": 32");
  }

  const std::string& path_;
  const std::string& text_;
  std::size_t position_ = 0;
  std::map<std::string, unsigned> lines_;
};

/// The scenario in the report of a run, as text in TOML.
std::string scenario_of_run(const std::string& path, const Json& report) {
  const auto refuse = [&](const std::string& got) {
    fail(path + ":1", "run report", got, "a scenario, or the report of a run whose scenario names no files",
         "fomoe validate " + path);
  };
  const Json run = report.value("run", Json::object());
  if (!run.is_object() || !run.contains("scenario_toml") || !run["scenario_toml"].is_string())
    refuse("a report without the scenario's text, which only measured runs have");
  if (!run.value("files", Json::object()).empty()) refuse("a run whose scenario names files");
  return run["scenario_toml"].get<std::string>();
}

}  // namespace

JsonTable table_of_json(const std::string& path, const std::string& text) {
  Json json;
  const auto refuse = [&](std::size_t position, const std::string& got) {
    fail(fmt::format("{}:{}", path, line_at(text, position)), "JSON", got,
         "an object with the tables of a scenario", "{\"strategy\": {\"method\": \"diloco\"}}");
  };
  if (const std::string excess = excess_in_json(text); !excess.empty()) refuse(0, excess);
  try {
    json = Json::parse(text);
  } catch (const Json::parse_error& error) {
    refuse(error.byte, "text that is not valid JSON");
  } catch (const Json::out_of_range&) {  // a number such as 1e999
    refuse(0, "a number that is too large");
  }
  JsonTable result;
  if (json.is_object() && json.value("schema", Json()) == "fomoe.run/1") {
    result.scenario_of_run = scenario_of_run(path, json);
    return result;
  }
  Converter converter(path, text);
  converter.add(json, "", result.table);
  result.lines = std::move(converter).lines();
  return result;
}

}  // namespace fomoe::scenario
