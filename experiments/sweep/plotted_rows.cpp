#include "experiments/sweep/plotted_rows.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "experiments/text/human.hpp"
#include "experiments/text/plot.hpp"
#include "experiments/text/units.hpp"
#include "platforms/support/input_error.hpp"

namespace fomoe::sweep {

namespace {

constexpr std::size_t kMostPlotted = 40;  // of a plot, so that it fits on a screen

/// At most `most` digits of an axis with `size` values, evenly spaced, with the first and the last.
std::vector<std::size_t> spread(std::size_t size, std::size_t most) {
  std::vector<std::size_t> digits;
  const std::size_t count = std::min(size, most);
  for (std::size_t i = 0; i < count; ++i) digits.push_back(count == 1 ? 0 : i * (size - 1) / (count - 1));
  return digits;
}

/// "1 Gbps", "50 ms", "40.0 %", "64".
std::string value_text(const Axis& axis, std::size_t digit) {
  using scenario::Kind;
  if (!axis.numeric()) return axis.words[digit];
  const double value = axis.numbers[digit];
  // A number without a prefix has no space after it.
  const auto with_unit = [](const std::string& count, const char* unit) {
    return count + (count.find(' ') == std::string::npos ? " " : "") + unit;
  };
  switch (axis.kind) {
    case Kind::rate:
      return with_unit(commands::human_count(value * scenario::kBitsPerByte), "bps");
    case Kind::latency:
    case Kind::duration:
      return commands::human_time(value);
    case Kind::size:
      return commands::human_bytes(value);
    case Kind::flop_rate:
      return with_unit(commands::human_count(value), "FLOPS");
    case Kind::power:
      return with_unit(commands::human_count(value), "W");
    case Kind::share:
      return commands::human_percent(value);
    default:
      return fmt::format("{:.6g}", value);
  }
}

std::vector<std::size_t> varied_axes(const Grid& grid) {
  std::vector<std::size_t> varied;
  std::string keys;
  for (std::size_t a = 0; a < grid.axes().size(); ++a) {
    if (grid.axes()[a].size() < 2) continue;
    varied.push_back(a);
    keys += (keys.empty() ? "" : ", ") + grid.axes()[a].key;
  }
  if (varied.size() > 2)
    throw UsageError(fmt::format(
        "--plot: got {} keys with several values ({}); expected one or two; for example --output sweep.json "
        "without --plot, and then fomoe report sweep.json --output report.html",
        varied.size(), keys));
  if (varied.empty()) varied.push_back(grid.axes().size() - 1);
  return varied;
}

}  // namespace

PlottedRows::PlottedRows(const Grid& grid, int width) : grid_(grid), width_(width), axes_(varied_axes(grid)) {
  digits_[0] = spread(grid.axes()[axes_[0]].size(), kMostPlotted);
  digits_[1] = {0};
  if (axes_.size() == 2)
    digits_[1] = spread(grid.axes()[axes_[1]].size(),
                        std::min(kMostPlotted, static_cast<std::size_t>(commands::most_columns(width))));
  cells_.resize(digits_[0].size() * digits_[1].size());
}

int PlottedRows::place(std::size_t side, std::uint64_t row) const {
  if (side >= axes_.size()) return 0;
  const std::vector<std::size_t>& digits = digits_[side];
  const std::size_t digit = grid_.digit(row, axes_[side]);
  const auto found = std::lower_bound(digits.begin(), digits.end(), digit);
  return found != digits.end() && *found == digit ? static_cast<int>(found - digits.begin()) : -1;
}

void PlottedRows::add(const Chunk& chunk) {
  static constexpr std::size_t kWallClock = column("wall_clock_s"), kIdle = column("round_idle_s");
  for (std::size_t i = 0; i < chunk.rows; ++i) {
    const int row = place(0, chunk.first_row + i), column = place(1, chunk.first_row + i);
    if (row < 0 || column < 0) continue;
    Cell& cell = cells_[static_cast<std::size_t>(row) * digits_[1].size() + static_cast<std::size_t>(column)];
    cell.possible = chunk.problems[i].empty();
    if (!cell.possible) continue;
    // Without a known memory the comparison is false, because the memory is then not a number.
    cell.fits = !(chunk.results[kNeededColumn][i] > chunk.results[kMemoryColumn][i]);
    cell.wall_clock_s = chunk.results[kWallClock][i];
    cell.compute_s = chunk.results[kComputeColumn][i];
    cell.exposed_s = chunk.results[kExposedColumn][i];
    cell.idle_s = chunk.results[kIdle][i];
  }
}

std::vector<std::string> PlottedRows::labels(std::size_t side) const {
  std::vector<std::string> texts;
  for (const std::size_t digit : digits_[side]) texts.push_back(value_text(grid_.axes()[axes_[side]], digit));
  return texts;
}

std::string PlottedRows::left_out() const {
  std::string text;
  for (std::size_t side = 0; side < axes_.size(); ++side) {
    const Axis& axis = grid_.axes()[axes_[side]];
    if (digits_[side].size() < axis.size())
      text += fmt::format("shown: {} of {} values of {}\n", digits_[side].size(), axis.size(), axis.key);
  }
  return text;
}

std::string PlottedRows::text() const {
  const std::string title = "wall clock by " + grid_.axes()[axes_[0]].key;
  if (axes_.size() == 2) {
    commands::HeatMap map = {fmt::format("{} (rows) and {} (columns)", title, grid_.axes()[axes_[1]].key),
                             labels(0),
                             labels(1),
                             {}};
    for (const Cell& cell : cells_) map.cells.push_back({cell.possible, cell.fits, cell.wall_clock_s});
    return commands::heat_map(map, width_) + left_out();
  }
  const std::vector<std::string> names = labels(0);
  std::vector<commands::TimeBar> bars;
  for (std::size_t i = 0; i < cells_.size(); ++i) {
    const Cell& cell = cells_[i];
    bars.push_back({names[i], cell.wall_clock_s, cell.compute_s, cell.exposed_s, cell.idle_s,
                    !cell.possible ? "impossible"
                    : cell.fits    ? ""
                                   : "does not fit into GPU memory"});
  }
  return commands::time_bars(title, bars, width_) + left_out();
}

}  // namespace fomoe::sweep
