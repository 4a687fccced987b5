#include "experiments/scenario/toml/table_reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <sstream>
#include <stdexcept>

#include "experiments/text/suggest.hpp"
#include "platforms/support/input_error.hpp"
#include "platforms/support/whole_file.hpp"

namespace fomoe::scenario {
namespace {

std::vector<std::string> names_in(std::span<const Key> keys, std::string_view table) {
  std::vector<std::string> names;
  for (const Key& key : keys) {
    if (key.table == table) names.emplace_back(key.name);
    // Lists a nested table only once.
    const bool inside = !table.empty() && key.table.size() > table.size() + 1 &&
                        key.table.starts_with(table) && key.table[table.size()] == '.';
    const std::string name(inside ? key.table.substr(table.size() + 1) : "");
    if (inside && std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  }
  return names;
}

std::vector<std::string> tables_of(std::span<const Key> keys) {
  std::vector<std::string> tables;
  for (const Key& key : keys) {
    const std::string name(key.table);
    if (!name.empty() && name.find('.') == std::string::npos &&
        std::find(tables.begin(), tables.end(), name) == tables.end())
      tables.push_back(name);
  }
  return tables;
}

/// Values that this program does not support, but that users who know the field are likely to try. The error
/// message states that such a value is not available.
const std::vector<std::string>& not_yet_available() {
  static const std::vector<std::string> names = {"hierarchical", "server"};
  return names;
}

/// "tokens in [workload]", or "workload.tokens" for --set, if the key exists in another table.
std::string in_another_table(std::span<const Key> keys, const std::string& name, bool overridden) {
  // A table for all sites is meant rather than one for each.
  const auto one_for_each = [](const Key& key) { return key.table == "site" || key.table == "path"; };
  for (const bool each : {false, true})
    for (const Key& key : keys)
      if (key.name == name && !key.table.empty() && one_for_each(key) == each)
        return overridden ? dotted(key.table, name) : fmt::format("{} in [{}]", name, key.table);
  return "";
}

/// −1, which no key may be, if the value is not a number.
double plain_number(const toml::node& node) {
  return node.is_number() ? node.value<double>().value_or(-1) : -1;
}

/// "--set name='four sites'": an option that a shell takes as it stands.
std::string option_example(const std::string& key, std::string_view example) {
  if (example.size() > 1 && example.front() == '"') example = example.substr(1, example.size() - 2);
  const bool plain = example.find_first_of(" ;&|<>()$*?\"[]{}#!~`\\") == std::string::npos;
  return plain ? fmt::format("--set {}={}", key, example) : fmt::format("--set {}='{}'", key, example);
}

}  // namespace

TableReader::TableReader(const Document& document, std::span<const Key> keys, std::string_view name,
                         const toml::table* table, bool known)
    : document_(document), keys_(keys), name_(name), table_(table) {
  if (table_ != nullptr && !known) refuse_unknown_keys(document, keys, name, *table);
}

void refuse_unknown_keys(const Document& document, std::span<const Key> keys, std::string_view table_name,
                         const toml::table& table) {
  const auto is_known = [&](std::string_view name) {
    return std::any_of(keys.begin(), keys.end(), [&](const Key& key) {
      if (key.table == table_name && key.name == name) return true;
      if (table_name.empty()) return key.table == name;
      return key.table.size() == table_name.size() + 1 + name.size() && key.table.starts_with(table_name) &&
             key.table.ends_with(name) && key.table[table_name.size()] == '.';  // a table inside of this one
    });
  };
  // Most tables have no unknown key.
  if (std::all_of(table.begin(), table.end(), [&](const auto& entry) { return is_known(entry.first.str()); }))
    return;
  const std::vector<std::string> known = names_in(keys, table_name);
  constexpr int kMostShown = 20;
  int mistakes = 0;
  std::string messages;
  for (const auto& [toml_key, toml_node] : table) {
    const std::string name(toml_key.str());
    if (is_known(name)) continue;
    // refuse_unknown_tables() has told of unknown tables.
    if (table_name.empty() && (toml_node.is_table() || toml_node.is_array_of_tables())) continue;
    if (++mistakes > kMostShown) continue;
    const std::string other = usual_name(name, known);
    const std::string meant = other.empty() ? nearest(name, known) : other;
    const auto key_of = [&](const std::string& wanted) {
      return std::find_if(keys.begin(), keys.end(),
                          [&](const Key& key) { return key.table == table_name && key.name == wanted; });
    };
    const auto near = key_of(meant);
    const Key& first = near != keys.end() ? *near : *key_of(known.front());
    const std::string key = dotted(table_name, name);
    try {
      fail(document.place(key, &toml_node, &table), key, "an unknown key", "one of " + joined(known),
           document.overridden(key) ? option_example(dotted(table_name, first.name), first.example)
                                    : example_line(first),
           meant.empty() ? in_another_table(keys, name, document.overridden(key)) : meant);
    } catch (const FileError& error) {
      messages += (messages.empty() ? "" : "\n") + std::string(error.what());
    }
  }
  if (mistakes > kMostShown) messages += fmt::format("\n… and {} more unknown keys", mistakes - kMostShown);
  if (!messages.empty()) throw FileError(messages);
}

const Key& TableReader::row(std::string_view name) const {
  for (const Key& key : keys_) {
    if (key.table == name_ && key.name == name) return key;
  }
  throw std::logic_error(fmt::format("no row for the key {}", dotted(name_, name)));
}

const toml::node* TableReader::node(std::string_view name) const {
  return table_ == nullptr ? nullptr : table_->get(name);
}

std::string TableReader::place(std::string_view name) const {
  return document_.place(dotted(name_, name), node(name), table_);
}

std::string TableReader::example(const Key& key) const {
  const std::string full = dotted(name_, key.name);
  // For a mistake on the command line, the example is a command-line option.
  return document_.overridden(full) ? option_example(full, key.example) : example_line(key);
}

void TableReader::refuse(std::string_view name, const std::string& got, const std::string& expected,
                         const std::string& suggestion) const {
  fail(place(name), dotted(name_, name), got, expected, example(row(name)), suggestion);
}

void TableReader::refuse_for_example(std::string_view name, const std::string& got,
                                     const std::string& expected, const std::string& example,
                                     const std::string& suggestion) const {
  const std::string full = dotted(name_, name);
  fail(place(name), full, got, expected,
       document_.overridden(full) ? option_example(full, example) : fmt::format("{} = {}", name, example),
       suggestion);
}

void TableReader::refuse(std::string_view name, const std::string& expected) const {
  refuse(name, has(name) ? as_written(*node(name)) : "nothing", expected);
}

void TableReader::only_together(std::string_view key, std::string_view owner) const {
  if (!has(key) || has(owner)) return;
  const std::string full = dotted(name_, key), example(row(owner).example);
  fail(place(key), full, fmt::format("{} without {}", key, owner),
       fmt::format("{} only together with {}", key, owner),
       document_.overridden(full) ? option_example(dotted(name_, owner), example) : example_line(row(owner)));
}

void TableReader::only_one_of(std::string_view key, std::string_view other) const {
  if (!has(key) || !has(other)) return;
  const std::string full = dotted(name_, key), full_other = dotted(name_, other);
  // Of an option and a key of the file, the file's can be taken away.
  const bool by_option = document_.overridden(full), other_by_option = document_.overridden(full_other);
  fail(place(key), full, fmt::format("both {} and {}", key, other), "only one of them",
       by_option == other_by_option ? example(row(key))
                                    : fmt::format("--unset {}", by_option ? full_other : full));
}

const toml::node* TableReader::value(std::string_view name, toml::table& fallback) const {
  if (const toml::node* found = node(name)) return found;
  const Key& key = row(name);
  if (key.fallback.empty()) refuse(name, expected_value(key));
  fallback = toml::parse(fmt::format("value = {}", key.fallback));
  return fallback.get("value");
}

std::int64_t TableReader::count(std::string_view name) const {
  toml::table fallback;
  const toml::node* found = value(name, fallback);
  const Key& key = row(name);
  // A user may write a count as 1.34e9, which TOML reads as a float. A number that is not whole is refused,
  // never rounded.
  const double number = plain_number(*found);
  if (!(number >= key.min && number <= key.max) || number != std::floor(number)) {
    refuse(name, expected_value(key));
  }
  return found->is_integer() ? *found->value<std::int64_t>() : static_cast<std::int64_t>(number);
}

double TableReader::quantity(std::string_view name) const {
  toml::table fallback;
  const toml::node* found = value(name, fallback);
  const Key& key = row(name);
  const auto written = found->value_exact<std::string>();
  if (!written)
    refuse(name, as_written(*found) + (found->is_number() ? " (no unit)" : ""), expected_value(key));
  try {
    const double si = parse_quantity(*written, *quantity_of(key.kind));
    if (si == 0 && key.kind != Kind::latency)
      refuse(name, as_written(*found) + " (zero)", expected_value(key));
    if (key.bounded_size() && (si < key.min || si > key.max)) refuse(name, expected_value(key));
    return si;
  } catch (const QuantityError& error) {
    refuse(name, error.what(), expected_value(key), error.suggestion());
  }
}

double TableReader::number_up_to(std::string_view name, double most) const {
  toml::table fallback;
  const toml::node* found = value(name, fallback);
  const Key& key = row(name);
  const bool zero = key.kind == Kind::share && key.min == 0;
  if (const auto written = found->value_exact<std::string>()) {
    try {
      const double number = parse_percentage(*written);
      if ((number > 0 || zero) && number <= most) return number;
      refuse(name, expected_value(key));
    } catch (const QuantityError& error) {
      refuse(name, error.what(), expected_value(key));
    }
  }
  const double number = plain_number(*found);
  constexpr double kLeast = 1e-30;  // a smaller share of a rate gives times that no number holds
  if (number > 0 && number < kLeast)
    refuse(name, as_written(*found) + " (below the smallest value, 1e-30)", expected_value(key));
  if ((number > 0 || (zero && number == 0)) && number <= most) return number;
  // For example 40, where 0.4 was meant.
  const bool in_percent = key.kind == Kind::share && number > 10 && number <= 100 * most;
  refuse(name, has(name) ? as_written(*found) : "nothing", expected_value(key),
         in_percent ? fmt::format("{}", number / 100) : "");
}

double TableReader::factor(std::string_view name) const {
  toml::table fallback;
  const toml::node* found = value(name, fallback);
  const double number = plain_number(*found);
  if (number > row(name).max)
    refuse(name, as_written(*found) + " (above the largest value, 9e15)", expected_value(row(name)));
  if (!(number >= 1)) refuse(name, expected_value(row(name)));
  return number;
}

Money TableReader::money(std::string_view name) const {
  toml::table fallback;
  const toml::node* found = value(name, fallback);
  const auto written = found->value_exact<std::string>();
  if (!written) {
    refuse(name, as_written(*found) + (found->is_number() ? " (no currency)" : ""),
           expected_value(row(name)));
  }
  try {
    return parse_money(*written);
  } catch (const QuantityError& error) {
    refuse(name, error.what(), expected_value(row(name)), error.suggestion());
  }
}

bool TableReader::boolean(std::string_view name) const {
  toml::table fallback;
  const toml::node* found = value(name, fallback);
  if (!found->is_boolean()) refuse(name, expected_value(row(name)));
  return *found->value<bool>();
}

double TableReader::number(std::string_view name) const {
  const Key& key = row(name);
  if (key.kind == Kind::count) return static_cast<double>(count(name));
  if (key.kind == Kind::share) return number_up_to(name, std::min(1.0, key.max));
  if (key.kind == Kind::multiple) return number_up_to(name, key.max);
  if (key.kind == Kind::factor) return factor(name);
  if (key.kind == Kind::boolean) return boolean(name) ? 1 : 0;
  if (key.kind != Kind::choice) return quantity(name);
  const std::vector<std::string> names = key.member.names();
  return static_cast<double>(std::find(names.begin(), names.end(), text(name)) - names.begin());
}

bool TableReader::sets(const Key& key, bool defaults) const {
  if (key.table != name_ || key.member.has_rules) return false;
  return has(key.name) || (defaults && (!key.fallback.empty() || key.absent.empty()));
}

void TableReader::set_members(costmodel::Scenario& scenario, bool defaults) const {
  for (const Key& key : keys_)
    if (key.member.set != nullptr && sets(key, defaults)) key.member.set(scenario, number(key.name));
}

void TableReader::set_members(TrainerSettings& settings) const {
  for (const Key& key : keys_)
    if (key.member.set_trainer != nullptr && sets(key, true))
      key.member.set_trainer(settings, number(key.name));
}

std::string TableReader::text(std::string_view name) const {
  toml::table fallback;
  const toml::node* found = value(name, fallback);
  const Key& key = row(name);
  const auto written = found->value_exact<std::string>();
  if (!written || written->empty()) refuse(name, expected_value(key));
  if (key.kind != Kind::choice) return *written;
  const std::vector<std::string> known = key.member.names();
  if (std::find(known.begin(), known.end(), *written) == known.end()) {
    const std::string meant = nearest(*written, known);
    const auto& planned = not_yet_available();
    const bool is_planned = std::find(planned.begin(), planned.end(), *written) != planned.end();
    refuse(name, as_written(*found) + (is_planned ? " (not available)" : ""), expected_value(key),
           meant.empty() || is_planned ? "" : '"' + meant + '"');
  }
  return *written;
}

std::string TableReader::file(std::string_view name, bool folder) const {
  const std::string written = text(name);
  std::string path = document_.beside(written);
  const bool names_folder = is_folder(path);
  if (path_exists(path) && names_folder == folder) return path;
  const std::string shown = shortened(path);
  refuse(name,
         fmt::format("\"{}\" ({})", shortened(written),
                     names_folder ? shown + " is a folder" : "no such file: " + shown),
         folder ? "a folder, relative to the scenario file" : "a file, relative to the scenario file");
}

std::vector<std::string> TableReader::words(std::string_view name) const {
  std::vector<std::string> list;
  if (!has(name)) return list;
  const toml::array* array = node(name)->as_array();
  if (array == nullptr) refuse(name, expected_value(row(name)));
  for (const toml::node& entry : *array) {
    const auto word = entry.value_exact<std::string>();
    if (!word) refuse(name, as_written(entry) + " among them", expected_value(row(name)));
    list.push_back(*word);
  }
  return list;
}

std::vector<std::string> TableReader::list(std::string_view name) const {
  if (has(name) && node(name)->is_array()) return words(name);
  std::vector<std::string> names;
  std::istringstream text_of(text(name));
  for (std::string word; std::getline(text_of, word, ',');) {
    word.erase(0, word.find_first_not_of(' '));
    word.erase(word.find_last_not_of(' ') + 1);
    names.push_back(word);
  }
  return names;
}

void refuse_unknown_tables(const Document& document, std::span<const Key> keys,
                           const std::vector<std::string>& arrays) {
  const std::vector<std::string> tables = tables_of(keys);
  for (const auto& [toml_key, node] : document.root()) {
    const std::string name(toml_key.str());
    const bool known = std::find(tables.begin(), tables.end(), name) != tables.end();
    const bool is_array = std::find(arrays.begin(), arrays.end(), name) != arrays.end();
    const std::string form = is_array ? "[[" + name + "]]" : "[" + name + "]";
    if (known) {
      const toml::array* array = node.as_array();
      const bool right =
          is_array ? node.is_array_of_tables() || (array != nullptr && array->empty()) : node.is_table();
      if (!right) {
        fail(document.place(name, &node, nullptr), name, as_written(node),
             is_array ? "a list of tables" : "a table", form);
      }
    } else if (node.is_table() || node.is_array_of_tables()) {
      std::string place = document.place(name, &node, nullptr);
      // A table that exists only because of --set has no line, so the message names the override.
      if (const toml::table* table = node.as_table()) {
        for (const auto& [inner, value] : *table) {
          const std::string key = name + '.' + std::string(inner.str());
          if (document.overridden(key) && table->source().begin.line == 0)
            place = document.place(key, &value, nullptr);
        }
      }
      const std::string meant = nearest(name, tables);
      std::string all;
      for (const std::string& table : tables) {
        const bool array = std::find(arrays.begin(), arrays.end(), table) != arrays.end();
        all += (all.empty() ? "" : " ") + (array ? "[[" + table + "]]" : "[" + table + "]");
      }
      fail(place, name, "an unknown table", "one of " + all, "[" + tables.front() + "]",
           meant.empty() ? "" : "[" + meant + "]");
    }
  }
}

}  // namespace fomoe::scenario
