#include "experiments/files/quality_csv.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <optional>
#include <sstream>
#include <vector>

#include "experiments/files/csv.hpp"
#include "experiments/files/paper_tables.hpp"
#include "experiments/scenario/toml/document.hpp"
#include "experiments/text/suggest.hpp"
#include "platforms/support/parse_number.hpp"
#include "platforms/support/whole_file.hpp"

namespace fomoe::scenario {
namespace {

constexpr const char* kQualityHeader =
    "strategy,local_steps,placement,sites,expert_overlap,perplexity,plus_minus,note";
constexpr const char* kExampleQuality = "diloco,32,fixed,4,2,130.58,17.58,";

class QualityReader {
 public:
  explicit QualityReader(std::string name) : name_(std::move(name)) {}

  costmodel::QualityTable parse(std::string_view text) {
    std::istringstream lines{std::string(text)};
    bool header = false;
    for (std::string line; std::getline(lines, line);) {
      ++line_;
      if (!line.empty() && line.back() == '\r') line.pop_back();
      if (line.starts_with("# ") && !header) {
        read_scope(line.substr(2));
      } else if (!header) {
        if (line != kQualityHeader)
          wrong("header", fmt::format("\"{}\"", line),
                fmt::format("\"# key: value\" lines, then \"{}\"", kQualityHeader), kQualityHeader);
        header = true;
      } else {
        read_row(line);
      }
    }
    line_ = 1;
    if (table_.source.empty())
      wrong("source", "none", "a line \"# source: …\"", "# source: our runs of March");
    for (const char* needed : {"parameters", "tokens"}) {
      const bool given = std::any_of(table_.scope.begin(), table_.scope.end(),
                                     [&](const auto& entry) { return entry.first == needed; });
      if (!given)
        wrong(needed, "none", fmt::format("a line \"# {}: …\" that states the scope of the table", needed),
              fmt::format("# {}: 1.34e9", needed));
    }
    if (table_.rows.empty()) wrong("row", "none", "at least one", kExampleQuality);
    return std::move(table_);
  }

 private:
  [[noreturn]] void wrong(const std::string& key, const std::string& got, const std::string& expected,
                          const std::string& example, const std::string& suggestion = "") const {
    fail(fmt::format("{}:{}", name_, line_), key, got, expected, example, suggestion);
  }

  double number(std::string_view cell, const std::string& column, double min) const {
    const auto value = parse_number<double>(cell);
    if (!value || !std::isfinite(*value) || *value < min)
      wrong(column, fmt::format("\"{}\"", cell), fmt::format("a number of at least {}", min),
            kExampleQuality);
    return *value;
  }

  std::int64_t whole(std::string_view cell, const std::string& column) const {
    const double value = number(cell, column, 1);
    if (value != std::floor(value) || value > 1e9)
      wrong(column, fmt::format("\"{}\"", cell), "a whole number of at least 1", kExampleQuality);
    return static_cast<std::int64_t>(value);
  }

  void read_scope(const std::string& text) {
    const std::size_t colon = text.find(": ");
    const auto& names = costmodel::quality_scope_names();
    const std::string key = text.substr(0, colon);
    if (colon == std::string::npos || key == "note") return;  // a comment line
    const std::string value = text.substr(colon + 2);
    if (key == "source") {
      table_.source = value;
    } else if (key == "payload_dtype") {
      table_.payload_dtype = costmodel::enum_of<costmodel::ElementType>(value);
      if (!table_.payload_dtype)
        wrong(key, fmt::format("\"{}\"", value), "a value of strategy.payload_dtype",
              "# payload_dtype: int8");
    } else if (std::find(names.begin(), names.end(), key) != names.end()) {
      table_.scope.emplace_back(key, number(value, key, 1));
    } else {
      wrong(key, "an unknown key", "one of source, note, payload_dtype, " + joined(names), "# tokens: 1.34e9",
            nearest(key, names));
    }
  }

  void read_row(const std::string& line) {
    if (line.size() > kLongestRow)
      wrong("row", fmt::format("{} bytes", line.size()), fmt::format("at most {} bytes", kLongestRow),
            kExampleQuality);
    const std::vector<std::string> cells = csv_cells(line, 8);  // the last column, note, may contain commas
    if (cells.size() != 8) wrong("row", fmt::format("\"{}\"", line), "8 cells", kExampleQuality);
    costmodel::QualityRow row;
    row.strategy = cells[0];
    if (row.strategy.empty()) wrong("strategy", "an empty name", "a method's name", kExampleQuality);
    row.local_steps = whole(cells[1], "local_steps");
    row.placement = cells[2];
    if (row.placement != "fixed" && row.placement != "random" && row.placement != "affinity")
      wrong("placement", fmt::format("\"{}\"", cells[2]), "fixed, random or affinity", kExampleQuality);
    row.sites = static_cast<int>(whole(cells[3], "sites"));
    row.expert_overlap = static_cast<int>(whole(cells[4], "expert_overlap"));
    if (row.expert_overlap > row.sites)
      wrong("expert_overlap", cells[4], fmt::format("at most the {} sites", row.sites), kExampleQuality);
    row.perplexity = number(cells[5], "perplexity", 1);
    if (!cells[6].empty()) row.plus_minus = number(cells[6], "plus_minus", 0);
    row.note = cells[7];
    table_.rows.push_back(row);
  }

  std::string name_;
  int line_ = 0;
  costmodel::QualityTable table_;
};

}  // namespace

costmodel::QualityTable parse_quality_csv(std::string_view text, const std::string& name) {
  return QualityReader(name).parse(text);
}

costmodel::QualityTable read_quality_csv(const std::string& path) {
  const std::optional<std::string> text = whole_file(path);
  if (!text) fail(path + ":1", "file", "no readable file", "a table of perplexities", kQualityHeader);
  return parse_quality_csv(*text, path);
}

costmodel::QualityTable paper_table(const std::string& name) {
  return parse_quality_csv(name == "exp0" ? kPaperExp0 : kPaperExp1, "paper_" + name + ".csv");
}

costmodel::QualityTable paper_table() {
  costmodel::QualityTable table = paper_table("exp0");
  const costmodel::QualityTable exp1 = paper_table("exp1");
  table.source = "FoMoE paper (arXiv 2606.19025), tables exp0 and exp1: perplexity on C4 en";
  table.rows.insert(table.rows.end(), exp1.rows.begin(), exp1.rows.end());
  return table;
}

}  // namespace fomoe::scenario
