// Parses `--vary`: one key of the scenario and its list of values.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "experiments/scenario/keys/keys.hpp"

namespace fomoe::sweep {

struct Axis {
  std::string key;     // "platform.bandwidth"
  std::string column;  // column name with the unit of the numbers: "platform.bandwidth_bytes_per_s"
  scenario::Kind kind = scenario::Kind::text;
  std::vector<double> numbers;     // in SI units; empty if the values are words
  std::vector<std::string> words;  // empty if the values are numbers
  [[nodiscard]] bool numeric() const { return !numbers.empty(); }
  [[nodiscard]] std::size_t size() const { return numeric() ? numbers.size() : words.size(); }
  /// "platform.bandwidth=125000000Bps"; parsing it gives exactly the same value.
  [[nodiscard]] std::string assignment(std::size_t index) const;
};

/// Parses "key=v1,v2,…", "key=lo..hi+step" (lo, lo + step, …, up to hi), "key=lo..hi*factor", or
/// "key=lo..hi*n/decade" (n values per factor of 10). If the key is a count, the values of the last two forms
/// are rounded to whole numbers. A value that is given twice counts once. Throws UsageError, or FileError for
/// a key or value that is not valid in a scenario.
Axis parse_axis(const std::string& text);

/// All combinations of the axes' values, numbered from 0. The last axis varies fastest.
class Grid {
 public:
  explicit Grid(std::vector<Axis> axes);
  [[nodiscard]] const std::vector<Axis>& axes() const { return axes_; }
  [[nodiscard]] std::uint64_t rows() const { return rows_; }
  /// The index into the values of axes()[axis] in this row.
  [[nodiscard]] std::size_t digit(std::uint64_t row, std::size_t axis) const {
    return static_cast<std::size_t>(row / strides_[axis] % axes_[axis].size());
  }
  /// The row that differs only in the value of one axis.
  [[nodiscard]] std::uint64_t with_digit(std::uint64_t row, std::size_t axis, std::size_t digit) const {
    return row - this->digit(row, axis) * strides_[axis] + digit * strides_[axis];
  }
  [[nodiscard]] std::vector<std::string> assignments(std::uint64_t row) const;

 private:
  std::vector<Axis> axes_;
  std::vector<std::uint64_t> strides_;
  std::uint64_t rows_ = 1;
};

}  // namespace fomoe::sweep
