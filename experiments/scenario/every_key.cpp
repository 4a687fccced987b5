#include "experiments/scenario/every_key.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "experiments/scenario/sections/sections.hpp"
#include "experiments/scenario/toml/table_reader.hpp"
#include "platforms/support/input_error.hpp"
#include "platforms/support/parse_number.hpp"

namespace fomoe::scenario {
namespace {

constexpr std::size_t kMostShown = 20, kMostKept = 1000;

/// The line of a message "file:line: …"; 0 if it has none, as for an override.
long line_of(const std::string& message) {
  if (message.starts_with("--")) return 0;
  const std::size_t colon = message.find(':');
  if (colon == std::string::npos) return 0;
  return parse_leading_number<long>(std::string_view(message).substr(colon + 1)).value_or(0);
}

void read_value(const TableReader& table, const Key& key) {
  // A list of names may also be an array.
  if (key.name == "use_sites") return (void)table.list(key.name);
  if (key.kind == Kind::text || key.kind == Kind::choice) return (void)table.text(key.name);
  if (key.kind == Kind::money) return (void)table.money(key.name);
  if (key.kind == Kind::words) return (void)table.words(key.name);
  (void)table.number(key.name);
}

/// Checks each key of one table, without the others.
void check_keys(const Document& document, std::span<const Key> keys, std::string_view name,
                const toml::table& section, Mistakes& mistakes) {
  mistakes.collect([&] { refuse_unknown_keys(document, keys, name, section); });
  const TableReader table(document, keys, name, &section, /*known=*/true);
  for (const Key& key : keys) {
    if (key.table == name && table.has(key.name)) mistakes.collect([&] { read_value(table, key); });
  }
}

}  // namespace

bool Mistakes::collect(const std::function<void()>& read) {
  try {
    read();
    return true;
  } catch (const FileError& error) {
    // Each message is compared with all others.
    if (messages_.size() < kMostKept &&
        std::find(messages_.begin(), messages_.end(), error.what()) == messages_.end())
      messages_.emplace_back(error.what());
    return false;
  }
}

void Mistakes::throw_if_any() const {
  if (messages_.empty()) return;
  std::vector<std::string> sorted = messages_;
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const std::string& a, const std::string& b) { return line_of(a) < line_of(b); });
  std::string text;
  for (std::size_t i = 0; i < std::min(sorted.size(), kMostShown); ++i)
    text += (i == 0 ? "" : "\n") + sorted[i];
  if (sorted.size() > kMostShown)
    text += fmt::format("\n… and {}{} more mistakes", sorted.size() < kMostKept ? "" : "at least ",
                        sorted.size() - kMostShown);
  throw FileError(text);
}

void check_keys_of(const Document& document, std::string_view table, Mistakes& mistakes) {
  const toml::table* found = nullptr;
  if (mistakes.collect([&] { found = table.empty() ? &document.root() : find_table(document, table); }) &&
      found != nullptr)
    check_keys(document, scenario_keys(), table, *found, mistakes);
}

void check_every_key(const Document& document, Mistakes& mistakes) {
  mistakes.collect([&] { refuse_unknown_tables(document, scenario_keys(), {"site", "path"}); });
  std::set<std::string_view> tables;
  for (const Key& key : scenario_keys())
    if (key.table != "site" && key.table != "path") tables.insert(key.table);
  for (const std::string_view name : tables) check_keys_of(document, name, mistakes);
  for (const toml::table* site : find_tables(document, "site"))
    check_keys(document, own_site_keys(), "site", *site, mistakes);
  for (const toml::table* path : find_tables(document, "path"))
    check_keys(document, scenario_keys(), "path", *path, mistakes);
}

}  // namespace fomoe::scenario
