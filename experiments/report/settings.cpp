#include "experiments/report/settings.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "experiments/report/html.hpp"
#include "experiments/text/human.hpp"

namespace fomoe::report {

using scenario::Json;

namespace {

constexpr std::size_t kMostSettings = 60;

std::string plain(const Json& value) {
  if (value.is_null()) return "none";
  if (value.is_boolean()) return value.get<bool>() ? "yes" : "no";
  if (value.is_string()) return value.get<std::string>();
  if (value.is_number_float()) return fmt::format("{:.6g}", value.get<double>());
  return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

bool all_objects(const Json& list) {
  return !list.empty() &&
         std::all_of(list.begin(), list.end(), [](const Json& entry) { return entry.is_object(); });
}

std::string list_table(const std::string& caption, const Json& list) {
  std::vector<Column> columns;
  for (const Json& entry : list) {
    for (const auto& item : entry.items()) {
      const auto same = [&](const Column& column) { return column.title == item.key(); };
      if (std::none_of(columns.begin(), columns.end(), same))
        columns.push_back({item.key(), item.value().is_number()});
    }
  }
  std::vector<std::vector<std::string>> rows;
  for (const Json& entry : list) {
    if (rows.size() == kMostSettings) break;
    std::vector<std::string> row;
    for (const Column& column : columns)
      row.push_back(entry.contains(column.title) ? value_text(column.title, entry[column.title]) : "");
    rows.push_back(std::move(row));
  }
  return table(rows.size() < list.size()
                   ? fmt::format("{}: the first {} of {}", caption, rows.size(), list.size())
                   : caption,
               columns, rows);
}

}  // namespace

std::string value_text(const std::string& key, const Json& value) {
  if (value.is_array() && !all_objects(value)) {
    std::string text;
    for (const Json& entry : value) text += (text.empty() ? "" : ", ") + value_text(key, entry);
    return text.empty() ? "none" : text;
  }
  if (!value.is_number()) return plain(value);
  const auto number = value.get<double>();
  if (key.ends_with("bytes_per_s")) return commands::human_bytes(number) + "/s";
  if (key.find("_per_") != std::string::npos) return plain(value);
  if (key.ends_with("_s") && number >= 0) return commands::human_time(number);
  if (key.ends_with("_bytes")) return commands::human_bytes(number);
  return plain(value);
}

std::string settings(const std::string& caption, const Json& object) {
  std::vector<std::vector<std::string>> values;
  std::string inside;
  for (const auto& item : object.items()) {
    const std::string name = caption.empty() ? item.key() : caption + '.' + item.key();
    if (item.value().is_object() && !item.value().empty()) {
      inside += settings(name, item.value());
    } else if (item.value().is_array() && all_objects(item.value())) {
      inside += list_table(name, item.value());
    } else {
      values.push_back(
          {item.key(), item.value().is_object() ? "none" : value_text(item.key(), item.value())});
    }
  }
  if (values.empty()) return inside;
  return table(caption.empty() ? "general" : caption, {{"key"}, {"value"}}, values) + inside;
}

}  // namespace fomoe::report
