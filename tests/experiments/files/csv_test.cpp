// Tests of the CSV reader that all commands share: cells, quotes, and a file's header and rows.
#include "experiments/files/csv.hpp"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "experiments/scenario/scenario_reader.hpp"
#include "tests/experiments/run_fomoe.hpp"

using fomoe::scenario::csv_cells;
using fomoe::scenario::CsvFile;
using namespace fomoe::tests;

namespace {

using Cells = std::vector<std::string>;

std::string complaint(const std::string& text) {
  const Folder folder;
  write_all(folder / "t.csv", text);
  try {
    CsvFile file(folder / "t.csv", {"table", "a CSV of tests", "a,b", "1,2"});
    while (file.next()) (void)file.cell(1);
  } catch (const fomoe::FileError& error) {
    const std::string message = error.what();
    return message.substr(message.find("t.csv"));
  }
  return "accepted";
}

}  // namespace

TEST_CASE("cells: surrounding spaces and a carriage return are ignored, and empty cells are kept") {
  CHECK(csv_cells("a,b") == Cells{"a", "b"});
  CHECK(csv_cells(" a , b c \r") == Cells{"a", "b c"});
  CHECK(csv_cells("a,,") == Cells{"a", "", ""});
  CHECK(csv_cells("") == Cells{""});
}

TEST_CASE("quoted cells hold commas and quotes, and a quote elsewhere is an ordinary character") {
  CHECK(csv_cells(R"("a,b",c)") == Cells{"a,b", "c"});
  CHECK(csv_cells(R"("say ""a""", b)") == Cells{"say \"a\"", "b"});
  CHECK(csv_cells(R"("",b)") == Cells{"", "b"});
  CHECK(csv_cells("7\",8") == Cells{"7\",8"});  // an ordinary quote, since the cell does not begin with it
}

TEST_CASE("with a limit on the number of cells, the last cell is the rest of the line") {
  CHECK(csv_cells("a,b,a note, with commas", 3) == Cells{"a", "b", "a note, with commas"});
  CHECK(csv_cells("a", 3) == Cells{"a"});
}

TEST_CASE("a file: its header, its rows with their line numbers, and its mistakes") {
  const Folder folder;
  write_all(folder / "t.csv", "a, b\r\n1,2\r\n\r\n\"3,5\",4\n");
  CsvFile file(folder / "t.csv", {"table", "a CSV of tests", "a,b", "1,2"});
  REQUIRE(file.next());
  CHECK(file.cell(1) == "2");
  REQUIRE(file.next());
  CHECK(file.cell(0) == "3,5");
  CHECK(file.place() == (folder / "t.csv") + ":4");
  CHECK_FALSE(file.next());

  CHECK(complaint("a,b\n1,2\n") == "accepted");
  CHECK(complaint("a,c\n1,2\n") == "t.csv:1: header: got \"a,c\"; expected \"a,b\"; for example 1,2");
  CHECK(complaint("a,b\n1,2\n3\n") == "t.csv:3: row: got 1 cells; expected 2 cells; for example 1,2");
  CHECK(complaint("") == "t.csv:1: table: got an empty file; expected a CSV of tests; for example a,b");
}
