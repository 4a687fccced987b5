// `fomoe sweep --plot`: the wall clocks of a sweep as bars, or as a heat map if two keys vary.
#pragma once
#include <array>
#include <string>
#include <vector>

#include "experiments/sweep/rows.hpp"

namespace fomoe::sweep {

/// Keeps only the rows that the plot shows: all of them, or evenly spaced ones if there are too many.
class PlottedRows {
 public:
  /// Throws UsageError if more than two keys vary.
  PlottedRows(const Grid& grid, int width);
  void add(const Chunk& chunk);
  [[nodiscard]] std::string text() const;

 private:
  struct Cell {
    bool possible = false, fits = true;
    double wall_clock_s = 0, compute_s = 0, exposed_s = 0, idle_s = 0;
  };
  /// The place of a digit of an axis among the digits that the plot shows; -1 if it does not show the digit.
  [[nodiscard]] int place(std::size_t side, std::uint64_t row) const;
  [[nodiscard]] std::vector<std::string> labels(std::size_t side) const;
  [[nodiscard]] std::string left_out() const;

  const Grid& grid_;
  int width_;
  /// The axes that vary: the rows of the plot, and then the columns of a heat map.
  std::vector<std::size_t> axes_;
  std::array<std::vector<std::size_t>, 2> digits_;  // shown digits of each of these axes, in ascending order
  std::vector<Cell> cells_;                         // row by row
};

}  // namespace fomoe::sweep
