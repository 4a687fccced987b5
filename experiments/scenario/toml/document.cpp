#include "experiments/scenario/toml/document.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <regex>
#include <sstream>
#include <utility>

#include "experiments/scenario/keys/keys.hpp"
#include "experiments/scenario/toml/json_table.hpp"
#include "experiments/text/nesting.hpp"
#include "platforms/support/input_error.hpp"
#include "platforms/support/whole_file.hpp"

namespace fomoe::scenario {
namespace {

/// The [table] that contains a line of a file, for messages about keys that the parser refused.
std::string table_at(const std::string& text, unsigned line) {
  std::istringstream lines(text);
  std::string current, table;
  for (unsigned i = 1; i <= line && std::getline(lines, current); ++i) {
    const std::size_t open = current.find_first_not_of(" \t[");
    const std::size_t close = current.find(']');
    if (!current.empty() && current.find_first_not_of(" \t") == current.find('[') &&
        open != std::string::npos && close != std::string::npos && close > open) {
      table = current.substr(open, close - open);
    }
  }
  return table;
}

/// The key's name in toml++'s message "cannot redefine existing integer 'local_steps'"; empty for other
/// messages.
std::optional<std::string> redefined_name(std::string_view message) {
  if (message.find("cannot redefine") == std::string_view::npos) return std::nullopt;
  const std::size_t open = message.find('\'');
  const std::size_t close = message.find('\'', open + 1);
  if (open == std::string_view::npos || close == std::string_view::npos) return std::nullopt;
  return std::string(message.substr(open + 1, close - open - 1));
}

/// Parses the text. toml++ 3.3 has undefined behaviour for characters beyond ASCII outside of strings and
/// comments. excess_in_toml() refuses them in a well-formed text, but it takes the wrong part of a malformed
/// text for a string: `a = 0'é`. Therefore the text is parsed first with each of their bytes replaced by
/// seven characters ! and ?, which are also valid in strings and comments and nowhere else.
toml::table parsed(const std::string& text, const std::string& path) {
  std::string ascii;
  for (std::size_t i = text.starts_with("\xef\xbb\xbf") ? 3 : 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if (byte < 0x80) ascii += text[i];
    for (int bit = 0; byte >= 0x80 && bit < 7; ++bit) ascii += (byte >> bit & 1) != 0 ? '!' : '?';
  }
  if (ascii.size() != text.size()) (void)toml::parse(ascii, path);
  return toml::parse(text, path);
}

/// Parses the text after "=" as a TOML value; returns nothing if the text is a word without quotes.
std::optional<toml::table> parse_value(const std::string& text) {
  if (text.find('\n') != std::string::npos || excess_in_toml(text)) return std::nullopt;
  try {
    toml::table table = parsed("value = " + text, "");
    const toml::node* node = table.get("value");
    if (node == nullptr || node->is_date() || node->is_time() || node->is_date_time()) return std::nullopt;
    return table;
  } catch (const toml::parse_error&) {
    return std::nullopt;
  }
}

struct Unquoted {
  std::string name, value;
};

/// Detects the most common mistake, missing quotes: mfu = 40%, bandwidth = 10Gbps, method = fomoe.
std::optional<Unquoted> unquoted_value(const std::string& text, unsigned line) {
  static const std::regex form(R"(\s*([A-Za-z0-9_-]+)\s*=\s*([^\s"'\[{#][^"#]*?)\s*(#.*)?)");
  std::istringstream lines(text);
  std::string current;
  for (unsigned i = 0; i < line; ++i) std::getline(lines, current);
  constexpr std::size_t kLongest = 1000;  // std::regex calls itself for each character
  if (current.size() > kLongest) return std::nullopt;
  std::smatch parts;
  if (!std::regex_match(current, parts, form) || parse_value(parts[2])) return std::nullopt;
  return Unquoted{parts[1], parts[2]};
}

/// Standard input can be read only once, but a scenario is read several times.
const std::string& standard_input() {
  static const std::string text = read_to_end(STDIN_FILENO, "stdin");
  return text;
}

/// The dotted key whose value in the file is this text, and its node; for messages.
std::pair<std::string, const toml::node*> key_of(const toml::table& table, const std::string& value,
                                                 const std::string& name = "") {
  for (const auto& [key, node] : table) {
    const std::string full = dotted(name, key.str());
    if (node.value_exact<std::string>() == value) return {full, &node};
    if (const toml::table* inner = node.as_table()) {
      if (const auto found = key_of(*inner, value, full); found.second != nullptr) return found;
    }
  }
  return {"file", nullptr};
}

std::string content_of(const std::string& path, const std::string& what, const std::string& example_path) {
  if (path == "-") return standard_input();
  std::optional<std::string> content = whole_file(path);
  if (content) return *std::move(content);
  fail(shortened(path) + ":1", what, is_folder(path) ? "a folder" : "no readable file",
       "a file in TOML or JSON", example_path);
}

[[noreturn]] void fail_parse(const std::string& path, const std::string& text, unsigned line,
                             const std::string& description) {
  const std::string place = fmt::format("{}:{}", path, line);
  if (const auto name = redefined_name(description)) {
    const std::string table = table_at(text, line);
    const bool is_table = description.find("table '") != std::string::npos || table == *name;
    const std::string key = is_table || table.empty() ? *name : table + '.' + *name;
    fail(place, key, "a duplicate name", "each key and table once", "delete one of the two");
  }
  if (const auto found = unquoted_value(text, line)) {
    const std::string table = table_at(text, line);
    const std::string name = table.empty() ? found->name : table + '.' + found->name;
    const Key* const key = find_key(name);
    const bool plain = key != nullptr && (key->kind == Kind::count || key->kind == Kind::boolean);
    fail(place, name, found->value + " without quotes",
         key != nullptr ? expected_value(*key) : "quotes around every value except numbers, true and false",
         plain ? example_line(*key) : fmt::format("{} = \"{}\"", found->name, found->value));
  }
  fail(place, "TOML", description, "a file in TOML", "local_steps = 32");
}

/// The table with this name, such as "strategy" or "strategy.compression", and the root for "". Null if there
/// is none.
template <class Table>
Table* table_named(Table& root, const std::string& name) {
  if (name.empty()) return &root;
  const std::size_t dot = name.find('.');
  auto* outer = root.template get_as<toml::table>(name.substr(0, dot));
  if (dot == std::string::npos || outer == nullptr) return outer;
  return outer->template get_as<toml::table>(name.substr(dot + 1));
}

}  // namespace

void fail(const std::string& place, const std::string& key, const std::string& got,
          const std::string& expected, const std::string& example, const std::string& suggestion) {
  std::string message =
      fmt::format("{}: {}: got {}; expected {}; for example {}", place, key, got, expected, example);
  if (!suggestion.empty()) message += fmt::format("; did you mean {}?", suggestion);
  throw FileError(message);
}

std::string shortened(const std::string& text) {
  constexpr std::size_t kShown = 200;
  return text.size() > kShown ? text.substr(0, kShown) + "…" : text;
}

std::string as_written(const toml::node& node) {
  if (const auto text = node.value_exact<std::string>()) return '"' + *text + '"';
  if (const auto number = node.value_exact<std::int64_t>()) return std::to_string(*number);
  if (const auto number = node.value_exact<double>()) return fmt::format("{}", *number);
  if (const auto flag = node.value_exact<bool>()) return *flag ? "true" : "false";
  if (node.is_table()) return "a table";
  if (node.is_array()) return "an array";
  return "a date or time";
}

Document Document::read(const std::string& path, const std::string& what, const std::string& example_path) {
  Document document;
  document.path_ = path == "-" ? "stdin" : path;
  std::string text = content_of(path, what, example_path);
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
  if (text.starts_with(kByteOrderMark)) text.erase(0, kByteOrderMark.size());
  if (const std::size_t first = text.find_first_not_of(" \t\r\n");
      first != std::string::npos && text[first] == '{') {
    JsonTable json = table_of_json(document.path_, text);
    if (json.scenario_of_run.empty()) {
      document.root_ = std::move(json.table);
      document.lines_ = std::move(json.lines);
      return document;
    }
    text = std::move(json.scenario_of_run);
  }
  if (const auto excess = excess_in_toml(text)) fail_parse(document.path_, text, excess->line, excess->what);
  try {
    document.root_ = parsed(text, document.path_);
  } catch (const toml::parse_error& error) {
    fail_parse(document.path_, text, error.source().begin.line, std::string(error.description()));
  }
  return document;
}

void Document::override_key(const std::string& assignment) {
  if (assignment.starts_with('!')) return unset(assignment.substr(1));
  const std::string place = "--set " + assignment;
  const std::string example = "--set strategy.local_steps=64";
  const std::size_t equals = assignment.find('=');
  const std::string key = assignment.substr(0, equals);
  if (equals == std::string::npos || equals == 0) fail(place, key, "no key=value", "one key=value", example);
  const std::string text = assignment.substr(equals + 1);
  if (text.empty()) fail(place, key, "no value after =", "key=value", example);

  if (key.starts_with("site.") || key.starts_with("path.")) {
    const ElementKey element = element_key(key);
    if (element.table.empty())
      fail(place, key, "a key of another form", "site.NAME.KEY or path.FROM.TO.KEY",
           "--set site.site-1.gpus_per_site=8");
    overrides_[dotted(element.table, element.name)] = assignment;
    chosen_.insert(key);
    return put(element_table(element), element.name, text, place, key);
  }
  const auto [table_name, name] = table_and_name(key);
  if (name.empty() || name.find('.') != std::string::npos || key.starts_with('.')) {
    fail(place, key, "a key of another form", "table.key", example);
  }

  toml::table* table = &root_;
  if (!table_name.empty()) {
    for (std::size_t begin = 0, end = 0; end != std::string::npos; begin = end + 1) {
      end = table_name.find('.', begin);
      const std::string part = table_name.substr(begin, end == std::string::npos ? end : end - begin);
      if (!table->contains(part)) table->insert(part, toml::table{});
      toml::table* inner = table->get_as<toml::table>(part);
      if (inner == nullptr) {
        const std::string so_far = table_name.substr(0, end);
        fail(this->place(so_far), so_far, as_written(*table->get(part)), "a table", "[" + so_far + "]");
      }
      table = inner;
    }
  }
  overrides_[key] = assignment;
  chosen_.insert(key);
  put(*table, name, text, place, key);
}

toml::table& Document::element_table(const ElementKey& element) {
  if (!root_.contains(element.table)) root_.insert(element.table, toml::array{});
  toml::array* elements = root_.get_as<toml::array>(element.table);
  if (elements == nullptr)
    fail(place(element.table), element.table, as_written(*root_.get(element.table)), "an array of tables",
         "[[" + element.table + "]]");
  for (toml::node& node : *elements) {
    toml::table* table = node.as_table();
    if (table == nullptr) continue;
    const bool means = std::all_of(element.selects.begin(), element.selects.end(), [&](const auto& one) {
      const toml::node* value = table->get(one.first);
      return value != nullptr && value->value_exact<std::string>() == one.second;
    });
    if (means) return *table;
  }
  toml::table added;
  for (const auto& [key, value] : element.selects) added.insert(key, value);
  elements->push_back(std::move(added));
  return *elements->back().as_table();
}

void Document::put(toml::table& table, const std::string& name, const std::string& text,
                   const std::string& place, const std::string& key) {
  const std::string example = "--set strategy.local_steps=64";
  if (const auto parsed = parse_value(text)) {
    // An override of a whole table would hide which override a later message is about.
    if (parsed->get("value")->is_table()) fail(place, key, "a table", "one key", example);
    table.insert_or_assign(name, *parsed->get("value"));
  } else if (text.front() == '"' || text.front() == '\'' || text.front() == '[' || text.front() == '{') {
    fail(place, key, text, "a TOML value or a bare word", example);
  } else {
    table.insert_or_assign(name, text);
  }
}

Document Document::with_keys_of(const std::string& name, const toml::table& other) const {
  Document copy = *this;
  copy.chosen_.clear();
  if (!copy.root_.contains(name)) copy.root_.insert(name, toml::table{});
  toml::table& table = *copy.root_.get_as<toml::table>(name);
  const auto note_line = [&](std::string_view key, const toml::node& node) {
    if (const unsigned line = node.source().begin.line; line > 0) copy.lines_[dotted(name, key)] = line;
  };
  if (const toml::table* before = root_.get_as<toml::table>(name)) {
    for (const auto& [key, node] : *before) note_line(key.str(), node);
  }
  for (const auto& [key, node] : other) {
    // Its own keys, such as a name, are not keys of the table.
    if (find_key(dotted(name, key.str())) == nullptr) continue;
    table.insert_or_assign(key, node);
    copy.overrides_.erase(dotted(name, key.str()));
    copy.chosen_.insert(dotted(name, key.str()));
    note_line(key.str(), node);
  }
  return copy;
}

void Document::unset(const std::string& key) {
  const auto [table_name, name] = table_and_name(key);
  toml::table* table = table_named(root_, table_name);
  if (table == nullptr || table->erase(name) == 0)
    fail("--unset " + key, key, "no such key in " + path_, "a key of the scenario, or a table",
         "--unset strategy.collective");
}

void Document::displace(std::string_view table, std::string_view name) {
  toml::table* found = root_.get_as<toml::table>(table);
  if (found == nullptr || !found->contains(name)) return;
  displaced_[fmt::format("{}.{}", table, name)] = as_written(*found->get(name));
  found->erase(name);
}

std::string Document::displaced(const std::string& key) const {
  const auto found = displaced_.find(key);
  return found == displaced_.end() ? std::string() : found->second;
}

std::string Document::beside(const std::string& name) const {
  std::string path = (std::filesystem::path(path_).parent_path() / name).lexically_normal().string();
  const std::string special = special_file(path);
  if (special.empty()) return path;
  const auto [key, node] = key_of(root_, name);
  fail(place(key, node, nullptr), key, fmt::format("\"{}\" ({})", shortened(name), special),
       "a regular file or a folder, relative to the scenario file",
       fmt::format("{} = \"a-copy-of-it\"", key.substr(key.rfind('.') + 1)));
}

std::string Document::place(const std::string& key, const toml::node* node, const toml::node* table) const {
  if (const auto found = overrides_.find(key); found != overrides_.end()) return "--set " + found->second;
  if (const auto found = lines_.find(key); found != lines_.end())
    return fmt::format("{}:{}", path_, found->second);
  unsigned line = node != nullptr ? node->source().begin.line : 0;
  if (line == 0 && table != nullptr) line = table->source().begin.line;
  return fmt::format("{}:{}", path_, std::max(line, 1U));
}

std::string Document::place(const std::string& key) const {
  const auto [table_name, name] = table_and_name(key);
  const toml::table* table = table_named(root_, table_name);
  return place(key, table != nullptr ? table->get(name) : nullptr, table);
}

const toml::table* find_table(const Document& document, std::string_view name) {
  const std::size_t dot = name.find('.');
  const toml::table* outer = document.root().get_as<toml::table>(name.substr(0, dot));
  if (dot == std::string_view::npos || outer == nullptr) return outer;
  const toml::node* node = outer->get(name.substr(dot + 1));
  if (node != nullptr && !node->is_table()) {
    fail(document.place(std::string(name), node, outer), std::string(name), as_written(*node), "a table",
         fmt::format("[{}]", name));
  }
  return node == nullptr ? nullptr : node->as_table();
}

std::vector<const toml::table*> find_tables(const Document& document, std::string_view name) {
  std::vector<const toml::table*> found;
  if (const toml::array* array = document.root().get_as<toml::array>(name)) {
    for (const toml::node& node : *array)
      if (const toml::table* table = node.as_table()) found.push_back(table);
  }
  return found;
}

}  // namespace fomoe::scenario
