// Rows as CSV or JSON, piece by piece: memory does not grow with the number of rows.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "experiments/sweep/rows.hpp"
#include "platforms/support/atomic_file.hpp"

namespace fomoe::sweep {

/// JSON: {"schema": "fomoe.sweep/1", "executor": …, "axes": […], "rows": [one object a line]}; CSV: a line of
/// column names first. Numbers read back exactly.
class RowWriter {
 public:
  /// `path` "-": JSON on stdout; else a .csv or .json file, which appears when finish() has been called.
  RowWriter(const std::string& path, const Grid& grid, const std::string& executor);

  void write(const Chunk& chunk);
  void finish();

 private:
  struct Column {
    double last = 0;  // most columns repeat for many rows: their text is kept
    std::string text;
  };

  void put(std::string_view text) { buffer_.append(text); }
  void put_number(Column& column, double value);
  void put_axis(std::size_t axis, std::uint64_t row);
  void write_csv_row(const Chunk& chunk, std::size_t index);
  void write_json_row(const Chunk& chunk, std::size_t index);
  void flush();

  const Grid& grid_;
  std::string executor_;
  bool csv_;
  std::unique_ptr<AtomicFile> file_;  // none: stdout
  std::string buffer_;
  std::vector<std::vector<std::string>> axis_texts_;  // of axes short enough to keep, else empty
  std::vector<Column> axis_columns_;
  std::array<Column, kResultCount> columns_;
  bool first_ = true;
};

}  // namespace fomoe::sweep
