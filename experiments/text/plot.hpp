// Charts in a terminal: bars and heat maps of Unicode blocks, readable without colours.
#pragma once
#include <string>
#include <vector>

namespace fomoe::commands {

/// The columns that a chart may use: those of COLUMNS or else of the terminal behind stdout, from 40 to 200;
/// 80 if stdout is a file or a pipe.
int plot_width();

/// A wall clock and its parts. The parts may be given in any unit, because only their shares count.
struct TimeBar {
  std::string label;
  double wall_clock_s = 0;
  double compute = 0, exposed = 0, idle = 0;
  std::string remark;  // after the time, such as "does not fit"; a bar without a time shows only this
};
/// One line for each bar, and the meaning of the blocks. Labels longer than a third of the width are cut.
std::string time_bars(const std::string& title, const std::vector<TimeBar>& bars, int width);

struct HeatCell {
  bool possible = true, fits = true;
  double seconds = 0;  // more than zero if the cell is possible
};
struct HeatMap {
  std::string title;
  std::vector<std::string> rows, columns;  // the labels
  std::vector<HeatCell> cells;             // row by row
};
/// Times as five shades, and as text where they fit into the width. The shades divide the range of the times
/// evenly, or evenly in their logarithms if it covers a factor of ten.
std::string heat_map(const HeatMap& map, int width);
/// The largest number of columns that a heat map of this width can show.
int most_columns(int width);

}  // namespace fomoe::commands
