// Writes rows as CSV or JSON piece by piece, so that memory does not grow with the number of rows.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "experiments/sweep/rows.hpp"
#include "platforms/support/atomic_file.hpp"

namespace fomoe::sweep {

/// JSON: {"schema": "fomoe.sweep/1", "executor": …, "axes": […], "rows": [one object per line], "provenance":
/// […], "scenario": {…}}. CSV: a header line with the column names, then one line per row. Numbers keep all
/// digits.
class RowWriter {
 public:
  /// If `path` is "-", writes JSON to stdout. Otherwise `path` is a .csv or .json file, which exists only
  /// after finish(). `currency` is that of the costs; empty if there are none.
  RowWriter(const std::string& path, const Grid& grid, const std::string& executor,
            const std::string& currency);

  void write(const Chunk& chunk);
  /// Writes the end. In JSON that is the scenario of the first possible row, and where its numbers come from.
  void finish(const std::optional<costmodel::Scenario>& first_possible);

 private:
  struct Column {
    double last = 0;  // the value whose text is in `text`; most columns repeat it over many rows
    std::string text;
  };

  void put(std::string_view text) { buffer_.append(text); }
  void put_number(Column& column, double value);
  void put_axis(std::size_t axis, std::uint64_t row);
  void write_csv_row(const Chunk& chunk, std::size_t index);
  void write_json_row(const Chunk& chunk, std::size_t index);
  void flush();

  const Grid& grid_;
  std::string executor_, currency_;
  bool csv_;
  std::unique_ptr<AtomicFile> file_;  // null for stdout
  std::string buffer_;
  /// For each axis, the texts of all its values. Empty for an axis with so many numbers that their texts
  /// would need too much memory.
  std::vector<std::vector<std::string>> axis_texts_;
  std::vector<Column> axis_columns_;
  std::array<Column, kResultCount> columns_;
  bool first_ = true;
};

}  // namespace fomoe::sweep
