// Finds the axes of a sweep that change none of its rows.
#pragma once
#include <cstdint>
#include <vector>

#include "experiments/sweep/rows.hpp"

namespace fomoe::sweep {

class UnchangedAxes {
 public:
  /// Sweeps of more than a million rows are not examined, so that memory does not grow with them.
  explicit UnchangedAxes(const Grid& grid);

  void add(const Chunk& chunk);
  /// The axes with several values along which all results are equal, if all rows of the grid were added and
  /// are possible.
  [[nodiscard]] std::vector<std::size_t> found() const;

 private:
  const Grid& grid_;
  std::vector<std::uint64_t> digests_;  // of each row's results; 0: not added, or impossible
};

}  // namespace fomoe::sweep
