// Tests of the charts in a terminal: lengths and shades by hand, and no line longer than the width.
#include "experiments/text/plot.hpp"

#include <doctest/doctest.h>

#include <cstdlib>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "experiments/text/human.hpp"

using namespace fomoe::commands;

namespace {

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + part.size()))
    ++found;
  return found;
}

/// Sets COLUMNS while it lives.
class Columns {
 public:
  explicit Columns(const char* value) { setenv("COLUMNS", value, 1); }
  ~Columns() { unsetenv("COLUMNS"); }
  Columns(const Columns&) = delete;
  Columns& operator=(const Columns&) = delete;
};

}  // namespace

TEST_CASE("bars: the longest fills the room, and parts and bars are in proportion") {
  // Labels take 1 column, times 4 ("20 s"), and two gaps 4: 49 - 9 = 40 columns are left for 20 s.
  const std::string text = time_bars("wall clock", {{"a", 20, 1, 3, 0, ""}, {"b", 5, 30, 10, 0, ""}}, 49);
  const auto lines = lines_of(text);
  REQUIRE(lines.size() == 3);
  CHECK(lines[0] == "wall clock:  █ compute  ▒ exposed communication");
  CHECK(lines[1].starts_with("a  █"));
  CHECK(lines[1].ends_with("▒  20 s"));
  CHECK(count(lines[1], "█") == 10);  // a quarter of 40
  CHECK(count(lines[1], "▒") == 30);
  CHECK(count(lines[2], "█") == 8);  // 5 s are 10 columns, of which compute is 30 ÷ 40
  CHECK(count(lines[2], "▒") == 2);
  CHECK(lines[2].ends_with("▒" + std::string(32, ' ') + "5 s"));
}

TEST_CASE("bars: idle time has a block of its own, which the legend names only if there is some") {
  const auto with = lines_of(time_bars("wall clock", {{"a", 10, 2, 2, 4, ""}}, 57));
  CHECK(with[0].ends_with("  ░ idle"));
  CHECK(count(with[1], "░") == count(with[1], "█") + count(with[1], "▒"));
  const std::string without = time_bars("wall clock", {{"a", 10, 2, 2, 0.01, ""}}, 57);
  CHECK(count(without, "░") == 0);
}

TEST_CASE("bars: a short time is visible, an impossible one has no bar, and remarks follow the time") {
  const auto lines = lines_of(time_bars(
      "wall clock",
      {{"long", 1e5, 1, 0, 0, ""}, {"short", 1, 1, 0, 0, "too large"}, {"none", 0, 0, 0, 0, "impossible"}},
      80));
  REQUIRE(lines.size() == 4);
  CHECK(lines[2].starts_with("short  ▏"));
  CHECK(lines[2].ends_with("  1 s, too large"));
  CHECK(lines[3].starts_with("none "));
  CHECK(lines[3].ends_with(" impossible"));
  CHECK(count(lines[3], "█") + count(lines[3], "▏") == 0);
}

TEST_CASE("no line is longer than the width, whatever the labels are") {
  const std::string name = "strategy.method=straße platform.bandwidth=100Gbps O_e=2 and more and more";
  HeatMap map = {"wall clock by strategy.expert_overlap (rows) and b (columns)", {name, "b"}, {}, {}};
  for (int c = 0; c < 20; ++c) map.columns.push_back("column " + std::to_string(c));
  for (int c = 0; c < 40; ++c) map.cells.push_back({c != 3, c != 5, 1.0 + c});
  for (int width = 40; width <= 200; ++width) {
    const std::string bars = time_bars(
        "wall clock", {{name, 7000, 2, 1, 1, "does not fit into GPU memory"}, {"b", 1, 1, 0, 0, ""}}, width);
    for (const std::string& text : {bars, heat_map(map, width)})
      for (const std::string& line : lines_of(text))
        CHECK_MESSAGE(text_width(line) <= static_cast<std::size_t>(width), width << ": " << line);
    CHECK(bars.find("…") != std::string::npos);
    CHECK(count(bars, "█") >= 1);
  }
}

TEST_CASE("a heat map writes the times beside their shades if they fit") {
  const HeatMap map = {"title",
                       {"1", "16"},
                       {"slow", "fast"},
                       {{true, true, 5}, {true, true, 4}, {true, false, 2}, {false, true, 0}}};
  // From 2 s to 5 s, five shades of 0.6 s each: 4 s is in the fourth, which begins at 3.8 s.
  CHECK(heat_map(map, 80) ==
        "title\n"
        "    slow     fast\n"
        "1   ██ 5 s   ▓▓ 4 s\n"
        "16  ·· 2 s!  ×\n"
        "· 2 s to 2.6 s  ░ 2.6 s to 3.2 s  ▒ 3.2 s to 3.8 s  ▓ 3.8 s to 4.4 s\n"
        "█ 4.4 s to 5 s  × impossible  ! does not fit into GPU memory\n");
}

TEST_CASE(
    "a heat map with many columns keeps the shades, and shades times over a factor of ten by logarithm") {
  HeatMap map = {"title", {"a", "b"}, {}, {}};
  for (int c = 0; c < 30; ++c) map.columns.push_back(std::to_string(c + 1));
  for (int c = 0; c < 60; ++c) map.cells.push_back({true, true, c < 30 ? 1.0 : c < 59 ? 9.0 : 1e5});
  map.cells[2].possible = false;
  map.cells[40].fits = false;
  const auto lines = lines_of(heat_map(map, 50));
  REQUIRE(lines.size() >= 4);
  CHECK(lines[1] == "columns, from left to right: 1 to 30");
  // 9 s is below 1e5^(1/5) = 10 s, the end of the first shade.
  CHECK(lines[2].starts_with("a  ··×·"));
  CHECK(count(lines[3], "·") == 28);
  CHECK(count(lines[3], "!") == 1);
  CHECK(lines[3].ends_with("·█"));
  CHECK(lines[4].starts_with("· 1 s to 10 s  ░ 10 s to 100 s"));
}

TEST_CASE("equal times have one shade") {
  const HeatMap map = {"title", {"a"}, {"b", "c"}, {{true, true, 3}, {true, true, 3}}};
  CHECK(heat_map(map, 80) == "title\n   b       c\na  ██ 3 s  ██ 3 s\n█ 3 s\n");
}

TEST_CASE("the width is that of COLUMNS, within bounds") {
  for (const auto& [columns, width] : {std::pair{"120", 120}, {"7", 40}, {"100000", 200}}) {
    const Columns set(columns);
    CHECK(plot_width() == width);
  }
}
