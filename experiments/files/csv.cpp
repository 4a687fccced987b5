#include "experiments/files/csv.hpp"

#include <fmt/format.h>

#include <optional>
#include <utility>

#include "experiments/scenario/toml/document.hpp"
#include "platforms/support/whole_file.hpp"

namespace fomoe::scenario {

namespace {

std::string_view trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t\r");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\r") + 1 - first);
}

/// The end of the first cell of `line`: the first comma outside of quotes, or the end of the line.
std::size_t end_of_cell(std::string_view line) {
  bool quoted = false;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '"') quoted = !quoted;
    if (line[i] == ',' && !quoted) return i;
  }
  return line.size();
}

std::string unquoted(std::string_view cell) {
  if (cell.size() < 2 || cell.front() != '"' || cell.back() != '"') return std::string(cell);
  std::string text;
  for (std::size_t i = 1; i + 1 < cell.size(); ++i) {
    text += cell[i];
    if (cell[i] == '"' && cell[i + 1] == '"' && i + 2 < cell.size()) ++i;
  }
  return text;
}

}  // namespace

std::vector<std::string> csv_cells(std::string_view line, std::size_t most) {
  std::vector<std::string> cells;
  while (cells.size() + 1 < most) {
    const std::size_t end = end_of_cell(line);
    cells.push_back(unquoted(trimmed(line.substr(0, end))));
    if (end == line.size()) return cells;
    line.remove_prefix(end + 1);
  }
  cells.emplace_back(trimmed(line));
  return cells;
}

CsvFile::CsvFile(const std::string& path, CsvForm form)
    : path_(path), form_(std::move(form)), columns_(csv_cells(form_.header).size()) {
  std::optional<std::string> content = whole_file(path);
  if (!content) fail(path + ":1", form_.key, "no readable file", form_.what, form_.header);
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";  // spreadsheets write one
  if (content->starts_with(kByteOrderMark)) content->erase(0, kByteOrderMark.size());
  file_.str(*std::move(content));
  std::string line;
  if (!std::getline(file_, line)) fail(path + ":1", form_.key, "an empty file", form_.what, form_.header);
  if (csv_cells(line) == csv_cells(form_.header)) return;
  if (line.ends_with('\r')) line.pop_back();
  fail(path + ":1", "header", '"' + line + '"', fmt::format("\"{}\"", form_.header), form_.example_row);
}

bool CsvFile::next() {
  for (std::string line; std::getline(file_, line);) {
    ++line_;
    if (trimmed(line).empty()) continue;
    if (line.size() > kLongestRow)
      fail(place(), "row", fmt::format("{} bytes", line.size()), fmt::format("at most {} bytes", kLongestRow),
           form_.example_row);
    cells_ = csv_cells(line);
    if (cells_.size() != columns_) {
      fail(place(), "row", fmt::format("{} cells", cells_.size()), fmt::format("{} cells", columns_),
           form_.example_row);
    }
    return true;
  }
  return false;
}

std::string CsvFile::place() const { return fmt::format("{}:{}", path_, line_); }

}  // namespace fomoe::scenario
