// Reads CSV files with a fixed header; all CSV inputs use it.
#pragma once
#include <cstddef>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

namespace fomoe::scenario {

inline constexpr std::size_t kLongestRow = 1 << 20;  // bytes; longer ones are refused

/// Splits a line into cells (RFC 4180). A quoted cell may contain commas, and "" in it stands for a quote.
/// Spaces around a cell and a carriage return at the end of the line are dropped. If the line has more than
/// `most` cells, the last cell is the whole remainder of the line including its commas.
std::vector<std::string> csv_cells(std::string_view line, std::size_t most = static_cast<std::size_t>(-1));

/// The format of a CSV file, as used in error messages.
struct CsvForm {
  const char* key;     // scenario key that names the file: "paths_csv"
  const char* what;    // description: "a CSV of measured paths"
  const char* header;  // the columns in file order: "src,dst,…"
  std::string example_row;
};

/// Iterates over the rows of a file with a given header; skips empty lines.
class CsvFile {
 public:
  /// Throws FileError if the file cannot be read or has another header.
  CsvFile(const std::string& path, CsvForm form);
  /// Advances to the next row; returns false after the last one. Throws FileError if a row has more or fewer
  /// cells than the header.
  bool next();
  [[nodiscard]] const std::string& cell(std::size_t column) const { return cells_[column]; }
  [[nodiscard]] std::string place() const;  // "file:line" of the current row

 private:
  std::string path_;
  CsvForm form_;
  std::istringstream file_;
  int line_ = 1;
  std::size_t columns_ = 0;
  std::vector<std::string> cells_;
};

}  // namespace fomoe::scenario
