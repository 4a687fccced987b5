// Tests of names that try to control a terminal or a spreadsheet, and of values that are too long to quote.
#include <doctest/doctest.h>

#include <clocale>
#include <string>

#include "experiments/explore/grid.hpp"
#include "experiments/text/human.hpp"
#include "experiments/text/suggest.hpp"
#include "tests/experiments/run_fomoe.hpp"

using namespace fomoe::tests;

namespace {

/// The scenario of two sites, with a name of the scenario and of the first site that contain the text.
void write_scenario(const Folder& folder, const std::string& text) {
  write_all(folder / "s.json", R"({"name": ")" + text + R"(", "model": {"preset": "small"},
"workload": {"tokens": 1e7, "global_batch_sequences": 16}, "strategy": {"method": "diloco", "local_steps": 4},
"compute": {"step_time": "420ms"}, "platform": {"file": "p.toml"}})");
  const std::string links = "uplink = \"1Gbps\"\ndownlink = \"1Gbps\"\n";
  write_all(folder / "p.toml", "name = \"p\"\nsource = \"us\"\n[[site]]\nname = \"" + text + "a\"\n" + links +
                                   "[[site]]\nname = \"b\"\n" + links +
                                   "[default_path]\nlatency = \"25ms\"\n");
}

}  // namespace

TEST_CASE("control characters in names do not reach a terminal") {
  const Folder folder;
  write_scenario(folder, "\\u001b]0;owned\\u0007\\u009b31m");
  for (const std::string command :
       {"simulate s.json", "simulate s.json --output -", "cost s.json", "explain s.json",
        "compare s.json --vary strategy.local_steps=2,4", "plan s.json",
        "sweep s.json --vary strategy.local_steps=2,4 --output -"}) {
    CAPTURE(command);
    const Ran ran = run_in(folder.path(), "fomoe " + command);
    for (const std::string control : {"\x1b", "\x07", "\xc2\x9b"}) {
      CHECK(ran.out.find(control) == std::string::npos);
      CHECK(ran.err.find(control) == std::string::npos);
    }
  }
  const Ran ran = run_in(folder.path(), "fomoe simulate s.json");
  CHECK_MESSAGE(ran.exit_status == 0, ran.err);
  CHECK(ran.out.find("\\u001b]0;owned\\u0007\\u009b31ma") != std::string::npos);
}

TEST_CASE("a name does not become a formula in a spreadsheet, and numbers stay numbers") {
  using fomoe::commands::csv_cell;
  CHECK(csv_cell("=1+1") == "'=1+1");
  CHECK(csv_cell("@SUM(A1)") == "'@SUM(A1)");
  CHECK(csv_cell("+cmd|' /C calc'!A0") == "'+cmd|' /C calc'!A0");
  CHECK(csv_cell("-2+3") == "'-2+3");
  CHECK(csv_cell("\tx") == "'\tx");
  CHECK(csv_cell("=a,\"b\"") == "\"'=a,\"\"b\"\"\"");
  CHECK(csv_cell("-1.5e-3") == "-1.5e-3");
  CHECK(csv_cell("site-0") == "site-0");
  const Folder folder;
  write_scenario(folder, "=cmd,");
  const Ran ran = run_in(folder.path(), "fomoe simulate s.json --links l.csv --output a.csv");
  REQUIRE_MESSAGE(ran.exit_status == 0, ran.err);
  const std::string links = read_all(folder / "l.csv");
  CHECK(links.find(",\"uplink of =cmd,a\",") != std::string::npos);
}

TEST_CASE("a value of 50 MB is refused at once, in a short message") {
  const Folder folder;
  write_scenario(folder, "x");
  write_all(folder / "t.csv",
            "time,link,bandwidth,latency\n1s," + std::string(50'000'000, 'x') + ",1Mbps,\n");
  const std::string limits =
      "ulimit -v 1500000; ulimit -t 5; fomoe simulate s.json --set platform.trace=t.csv";
  const Ran ran = run_in(folder.path(), "sh -c '" + limits + "'");
  CHECK(ran.exit_status == 2);
  CHECK(ran.err.find("t.csv:2: row: got 50000010 bytes; expected at most 1048576 bytes") !=
        std::string::npos);
  write_all(folder / "big.json", R"({"strategy": {"method": ")" + std::string(50'000'000, 'x') + R"("}})");
  const Ran method =
      run_in(folder.path(), "sh -c 'ulimit -v 3000000; ulimit -t 20; fomoe simulate big.json'");
  CHECK(method.exit_status == 2);
  CHECK(method.err.size() < 4000);
  CHECK(fomoe::scenario::nearest(std::string(50'000'000, 'x'), {"ring", "direct"}).empty());
}

TEST_CASE("a locale with a decimal comma changes nothing") {
  const Folder folder;
  // The system's locales, or one that is made here.
  const bool made = run_in(folder.path(), "localedef -i de_DE -f UTF-8 ./de_DE.UTF-8").exit_status == 0;
  const fomoe::explore::Question question = {source_dir() + "/tests/ideal/two-sites.toml", {}};
  const std::string grid = fomoe::explore::grid_of(question).dump();
  if (made) setenv("LOCPATH", folder.path().c_str(), 1);
  const std::string before = std::setlocale(LC_ALL, nullptr);
  const bool comma =
      std::setlocale(LC_ALL, "de_DE.UTF-8") != nullptr && *std::localeconv()->decimal_point == ',';
  if (comma) {
    const Ran plain = run_in(source_dir(), "fomoe simulate tests/ideal/two-sites.toml --output -");
    const Ran german =
        run_in(source_dir(), "env LC_ALL=de_DE.UTF-8 fomoe simulate tests/ideal/two-sites.toml --output -");
    CHECK(german.exit_status == 0);
    CHECK(german.out == plain.out);
    // In a process that has set its locale, as a user of the Python package may.
    CHECK(fomoe::explore::grid_of(question).dump() == grid);
  } else {
    MESSAGE("left out: no locale with a decimal comma is installed, and localedef cannot make one");
  }
  std::setlocale(LC_ALL, before.c_str());
  unsetenv("LOCPATH");
}
