// The one reader of CSV.
#pragma once
#include <cstddef>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

namespace fomoe::scenario {

/// The cells of a line (RFC 4180): one in quotes may hold commas, and "" in it is a quote. Spaces around a
/// cell do not count, nor does a carriage return at the end. The last of `most` cells is what is left of the
/// line, commas and all.
std::vector<std::string> csv_cells(std::string_view line, std::size_t most = static_cast<std::size_t>(-1));

/// What a file's messages say: the key that names the file, what it holds, its header, a row that works.
struct CsvForm {
  const char* key;     // "paths_csv"
  const char* what;    // "a CSV of measured paths"
  const char* header;  // "src,dst,…": its columns, in this order
  std::string example_row;
};

/// Rows of a file with a given header, one after another; empty lines are passed over.
class CsvFile {
 public:
  /// Throws FileError where the file cannot be read, or begins with another header.
  CsvFile(const std::string& path, CsvForm form);
  /// Goes to the next row; false after the last. Throws FileError where a row has more or fewer cells.
  bool next();
  [[nodiscard]] const std::string& cell(std::size_t column) const { return cells_[column]; }
  [[nodiscard]] std::string place() const;  // "file:line" of the row

 private:
  std::string path_;
  CsvForm form_;
  std::ifstream file_;
  int line_ = 1;
  std::size_t columns_ = 0;
  std::vector<std::string> cells_;
};

}  // namespace fomoe::scenario
